"""Slurm's strings of generic resources, such as `gpu:a100:4(S:0-1),lscratch:3200`, of sinfo, scontrol and TRES lists.

Grammar: entries joined by commas; an entry is `name[:type][:no_consume][:count]` or `name[:type]=count`, perhaps
behind `gres/` or `gres:`, perhaps followed by notes in parentheses (sockets, indexes, shares used). Source: Slurm's
slurm.conf(5) (Gres) and gres.conf(5).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

_ABSENT = frozenset({"", "(null)", "N/A", "n/a", "none", "NONE", "None"})
_ENTRY = re.compile(r"([^,()]|\((?:[^()]*)\))+")
_NOTE = re.compile(r"\((?!null\))([^()]*)\)")
_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_SUFFIXES = "KMGTP"
_MIG = re.compile(r"(\d)g\.(\d+)gb(?:\+.*)?", re.IGNORECASE)
SLICES_OF_A_GPU = 7
SLICES_OF_AN_A30 = 4
"""Compute slices of a GPU; the A30 alone has slices of 6 GB. Source: NVIDIA's MIG User Guide, supported profiles."""
_FOUR_SLICED_GB = frozenset({24, 48, 96})
"""Memory of profiles that a GPU with four slices and one with seven both have."""


@dataclass(frozen=True)
class GresEntry:
    """One entry; None where it says nothing of a thing."""

    name: str
    type: str | None
    count: int
    sockets: str | None = None
    indexes: str | None = None
    usage: str | None = None
    """A note of another form, such as `0/24,0/24`: shares used and there are, by GPU."""
    total: bool = False
    """Written as in a TRES list, where an entry without a type counts those with one again."""

    @property
    def mig(self) -> str | None:
        """Its MIG profile, where the type is one."""
        return self.type if self.type is not None and _MIG.fullmatch(self.type) else None


@dataclass(frozen=True)
class Gres:
    """All entries of a string, in its order."""

    entries: tuple[GresEntry, ...]

    @cached_property
    def gpu_entries(self) -> tuple[GresEntry, ...]:
        """Entries of GPUs, without totals that count others again."""
        found = [entry for entry in self.entries if entry.name == "gpu"]
        typed = [entry for entry in found if entry.type is not None]
        return tuple(typed if typed and any(e.total and e.type is None for e in found) else found)

    @property
    def gpus(self) -> int:
        """GPUs, or MIG devices where the GPUs are cut up."""
        return sum(entry.count for entry in self.gpu_entries)

    @property
    def types(self) -> dict[str, int]:
        """GPUs by model; those without a type are left out."""
        return _add_up((e.type, e.count) for e in self.gpu_entries if e.mig is None)

    @property
    def mig(self) -> dict[str, int]:
        """MIG devices by profile."""
        return _add_up((e.mig, e.count) for e in self.gpu_entries)

    def count(self, name: str) -> int | None:
        """Count of a resource other than GPUs; None where the string does not have it."""
        counts = [entry.count for entry in self.entries if entry.name == name]
        return sum(counts) if counts else None


def parse_gres(text: str) -> Gres:
    """A Gres, GresUsed or TRES string; one that says that there is nothing has no entries."""
    stripped = text.strip()
    if stripped in _ABSENT:
        return Gres(())
    entries = (_parse_entry(match[0].strip()) for match in _ENTRY.finditer(stripped))
    return Gres(tuple(entry for entry in entries if entry is not None))


def count_gpus(text: str) -> int:
    """GPUs in a Gres string: `gpu:a100:4(S:0-1),lscratch:3200` has 4. A bare name means one."""
    return parse_gres(text).gpus


def count_whole_gpus(mig: Mapping[str, int]) -> int | None:
    """GPUs that these MIG devices fill without rest, each cut alike; None where they do not, or in several ways."""
    sizes = {profile: _MIG.fullmatch(profile) for profile in mig}
    matches = [(match, mig[profile]) for profile, match in sizes.items() if match is not None and mig[profile]]
    if not matches or len(matches) != len(mig) or any(int(match[2]) in _FOUR_SLICED_GB for match, _ in matches):
        return None
    per_gpu = SLICES_OF_AN_A30 if any(match[0].lower() == "1g.6gb" for match, _ in matches) else SLICES_OF_A_GPU
    slices = sum(int(match[1]) * count for match, count in matches)
    whole = slices // per_gpu
    return whole if slices == whole * per_gpu and all(count % whole == 0 for _, count in matches) else None


def _parse_entry(text: str) -> GresEntry | None:
    notes = _NOTE.findall(text)
    bare = _NOTE.sub("", text).strip()
    bare = bare.removeprefix("gres/").removeprefix("gres:")
    if bare in _ABSENT:
        return None
    body, equals, amount = bare.partition("=")
    name, *rest = body.split(":")
    if equals:
        count = _read_count(amount)
    elif rest and (last := _read_count(rest[-1])) is not None:
        count, rest = last, rest[:-1]
    else:
        count = 1
    types = [part for part in rest if part not in ("no_consume", "(null)", "")]
    return GresEntry(
        name=name,
        type=types[0] if types else None,
        count=1 if count is None else count,
        sockets=_find_note(notes, "S"),
        indexes=_find_note(notes, "IDX"),
        usage=next((note for note in notes if ":" not in note), None),
        total=bool(equals),
    )


def _find_note(notes: list[str], key: str) -> str | None:
    for note in notes:
        name, colon, value = note.partition(":")
        if colon and name == key and value not in _ABSENT:
            return value
    return None


def _read_count(text: str) -> int | None:
    match = _COUNT.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * (1024 ** (_SUFFIXES.index(match[2].upper()) + 1) if match[2] else 1)


def _add_up(parts: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for key, count in parts:
        if key is not None:
            total[key] = total.get(key, 0) + count
    return total
