"""Slurm's topology.conf: topology/tree and topology/block. Pure.

Grammar: `Key=Value` pairs, keys in any case, values perhaps in quotes, `#` to the end of the line, a backslash at its
end goes on. A line begins with SwitchName, BlockName or BlockSizes. Source: Slurm's topology.conf(5), and its
src/common/parse_config.c.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.fabric.blocks import check_blocks, read_sizes
from windtunnel.fabric.hosts import read_hosts
from windtunnel.fabric.topology import Block, Finding, Topology
from windtunnel.fabric.tree import Entry, build_tree
from windtunnel.records.cluster import Switch

_PAIR = re.compile(r"""\s*([A-Za-z_]\w*)\s*=\s*("[^"]*"|'[^']*'|\S+)""")
_COMMENTED = re.compile(r"#\s*(SwitchName|BlockName)\s*=\s*(\S+)", re.IGNORECASE)
_KEYS = {
    "switchname": {"switches", "nodes", "linkspeed"},
    "blockname": {"nodes"},
    "blocksizes": set[str](),
}


@dataclass(frozen=True)
class _Line:
    number: int
    pairs: dict[str, tuple[str, int]]
    """Key in lower case to value and column."""
    rest: tuple[str, int] | None
    """What is no pair, and where."""


def parse_conf(text: str) -> Topology:
    """The network that a topology.conf describes; its mistakes are findings."""
    findings: list[Finding] = []
    entries: list[Entry] = []
    blocks: list[Block] = []
    sizes: tuple[int, ...] | None = None
    for line in _split_lines(text):
        kind = next(iter(line.pairs), "")
        _check_line(line, kind, findings)
        if kind == "switchname":
            entries.append(_read_switch(line, findings))
        elif kind == "blockname":
            blocks.append(Block(line.pairs[kind][0], _read_list(line, "nodes", findings)))
        elif kind == "blocksizes":
            sizes = read_sizes(line.pairs[kind][0].split(","), findings, line=line.number)
    findings += _find_commented(text)
    if entries and (blocks or sizes is not None):
        findings.append(Finding("error", "mixed", "the file has switches and blocks: a plugin reads one of the two"))
    if not entries and not blocks:
        findings.append(Finding("warning", "empty", "the file has no switch and no block"))
    switches, found = build_tree(entries)
    findings += found + check_blocks(blocks, sizes)
    plugin = "tree" if entries else "block" if blocks or sizes is not None else None
    return Topology(
        "topology.conf",
        plugin=plugin,
        switches=switches,
        blocks=tuple(blocks),
        block_sizes=sizes,
        findings=tuple(findings),
    )


def _split_lines(text: str) -> Iterator[_Line]:
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = held + raw.partition("#")[0].rstrip()
        first = first or number
        if line.endswith("\\"):
            held = line[:-1] + " "
            continue
        if line.strip():
            yield _split_pairs(line, first)
        held, first = "", 0
    if held.strip():
        yield _split_pairs(held, first)


def _split_pairs(line: str, number: int) -> _Line:
    pairs: dict[str, tuple[str, int]] = {}
    position = 0
    while match := _PAIR.match(line, position):
        pairs.setdefault(match[1].lower(), (match[2].strip("\"'"), match.start(2) + 1))
        position = match.end()
    rest = line[position:].strip()
    return _Line(number, pairs, (rest, line.index(rest, position) + 1) if rest else None)


def _check_line(line: _Line, kind: str, findings: list[Finding]) -> None:
    if line.rest is not None:
        text, column = line.rest
        findings.append(Finding("error", "no-pair", f"{text[:60]!r} is no Key=Value", line.number, column))
    if kind not in _KEYS:
        if kind:
            text = f"a line begins with SwitchName, BlockName or BlockSizes, not with {kind!r}"
            findings.append(Finding("error", "unknown-key", text, line.number, 1))
        return
    for key, (_, column) in line.pairs.items():
        if key != kind and key not in _KEYS[kind]:
            text = f"{key!r} is no key of a {kind} line: {', '.join(sorted(_KEYS[kind])) or 'it has none'}"
            findings.append(Finding("error", "unknown-key", text, line.number, column))


def _read_switch(line: _Line, findings: list[Finding]) -> Entry:
    speed, column = line.pairs.get("linkspeed", ("", 0))
    if speed and not speed.isdecimal():
        text = f"LinkSpeed={speed} is no number"
        findings.append(Finding("error", "link-speed", text, line.number, column))
    switch = Switch(
        name=line.pairs["switchname"][0],
        level=0,
        nodes=_read_list(line, "nodes", findings),
        switches=_read_list(line, "switches", findings),
        link_speed=int(speed[:18]) if speed.isdecimal() else None,
    )
    if not {"nodes", "switches"} & line.pairs.keys():
        text = f"switch {switch.name} has nothing below it, which Slurm before 25.05 refuses"
        findings.append(Finding("warning", "no-children", text, line.number, 1))
    return Entry(switch, line.number)


def _read_list(line: _Line, key: str, findings: list[Finding]) -> tuple[str, ...]:
    value, column = line.pairs.get(key, ("", 0))
    return read_hosts(value, findings, line=line.number, column=column)


def _find_commented(text: str) -> list[Finding]:
    return [
        Finding("warning", f"commented-{match[1].lower()[:-4]}", f"{match[2]} is commented out", number, 1)
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := _COMMENTED.match(line.strip())) is not None
    ]
