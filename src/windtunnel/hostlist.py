"""Slurm's host lists: `n[0-3,7],gpu[01-02]` to names and back."""

import re
from collections.abc import Iterable

from windtunnel.errors import ClusterError

_PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_TAIL_NUMBER = re.compile(r"(.*?)(\d+)")
MAX_HOSTS = 2**20
"""A list of more is a slip of the pen: Slurm itself takes 65,536 hosts a range."""


def expand_hostlist(text: str) -> list[str]:
    """Names in the order written; raises ClusterError on brackets or ranges that do not parse."""
    names: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        assert match is not None
        if not match[0] or (match.end() < len(text) and text[match.end()] != ","):
            raise ClusterError(f"host list {text!r} does not parse at character {position}")
        names += _expand_part(match[0], text)
        _check_count(len(names), text)
        position = match.end() + 1
    return names


def collapse_hostlist(names: Iterable[str]) -> str:
    """The shortest usual form, in order of first appearance: `n[0-3,7]`."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: dict[str, None] = {}
    matches = [(name, _TAIL_NUMBER.fullmatch(name)) for name in names]
    padded = {(m[1], len(m[2])) for _, m in matches if m is not None and m[2].startswith("0") and len(m[2]) > 1}
    for name, match in matches:
        if match is None:
            plain[name] = None
        else:
            # node10 goes with node09: as wide, and so written alike.
            width = len(match[2]) if (match[1], len(match[2])) in padded else 0
            groups.setdefault((match[1], width), []).append(int(match[2]))
    return ",".join([*plain, *(_render_group(prefix, width, n) for (prefix, width), n in groups.items())])


def _expand_part(part: str, whole: str) -> list[str]:
    prefix, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, suffix = rest.partition("]")
    tails = _expand_part(suffix, whole) if suffix else [""]
    numbers = _expand_ranges(inside, whole)
    _check_count(len(numbers) * len(tails), whole)
    return [prefix + number + tail for number in numbers for tail in tails]


def _check_count(count: int, whole: str) -> None:
    if count > MAX_HOSTS:
        raise ClusterError(f"host list {whole[:100]!r} has {count} hosts, more than {MAX_HOSTS}")


def _expand_ranges(inside: str, whole: str) -> list[str]:
    numbers: list[str] = []
    for item in inside.split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None:
            raise ClusterError(f"host list {whole!r} has a range {item!r} that is not a number or a-b")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ClusterError(f"host list {whole!r} has a range {item!r} that runs backwards")
        _check_count(int(last) - int(first) + 1, whole)
        width = len(first) if first.startswith("0") else 0
        numbers += [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    return numbers


def _render_group(prefix: str, width: int, numbers: list[int]) -> str:
    ordered = sorted(set(numbers))
    if len(ordered) == 1:
        return prefix + str(ordered[0]).zfill(width)
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(r[0]).zfill(width) + (f"-{str(r[-1]).zfill(width)}" if len(r) > 1 else "") for r in runs]
    return f"{prefix}[{','.join(texts)}]"
