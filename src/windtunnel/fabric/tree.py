"""From switches and their children to a tree with levels, as Slurm's topology/tree builds it. Pure.

Source of the rules: Slurm's src/plugins/topology/tree/switch_record.c.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windtunnel.fabric.topology import UNKNOWN_LEVEL, Finding, unique
from windtunnel.records.cluster import Switch

_TRIED = 50
"""Switches that are tried for being in all cycles: those with the most switches below."""


@dataclass(frozen=True)
class Entry:
    """A switch as configured, and the line that says so; its level does not count."""

    switch: Switch
    line: int | None = None


def build_tree(entries: Sequence[Entry]) -> tuple[tuple[Switch, ...], list[Finding]]:
    """The switches with their levels (UNKNOWN_LEVEL where none can be), and what Slurm would refuse."""
    findings = [*_find_duplicates(entries), *_find_bad_children(entries)]
    switches = {entry.switch.name: entry.switch for entry in reversed(entries)}
    levels = find_levels(switches)
    open_ones = [name for name, level in levels.items() if level is None]
    lines = {entry.switch.name: entry.line for entry in reversed(entries)}
    if open_ones and (culprit := find_cycle(switches)) is not None:
        findings.append(Finding("error", "cycle", f"cycle through {culprit}", lines[culprit], 1))
    return tuple(replace(e.switch, level=_or_unknown(levels[e.switch.name])) for e in entries), findings


def find_levels(switches: Mapping[str, Switch]) -> dict[str, int | None]:
    """0 for a switch without switches below, else one more than the highest of those; None below or in a cycle."""
    levels: dict[str, int | None] = {name: 0 if s.nodes or not s.switches else None for name, s in switches.items()}
    waiting = [name for name, level in levels.items() if level is None]
    while waiting:
        still = []
        for name in waiting:
            below = [levels.get(child) for child in switches[name].switches]
            known = [level for level in below if level is not None]
            if len(known) == len(below):
                levels[name] = 1 + max(known)
            else:
                still.append(name)
        if len(still) == len(waiting):
            break
        waiting = still
    return levels


def find_cycle(switches: Mapping[str, Switch]) -> str | None:
    """A switch that a cycle goes through: the one that all cycles share where there is one; None without cycles."""
    edges = {name: [c for c in s.switches if c in switches] for name, s in switches.items()}
    left = _peel(edges)
    by_degree = sorted(left, key=lambda name: -sum(child in left for child in edges[name]))
    for name in by_degree[:_TRIED]:
        if not _peel({other: [c for c in edges[other] if c != name] for other in left if other != name}):
            return name
    return by_degree[0] if by_degree else None


def _peel(edges: Mapping[str, Sequence[str]]) -> set[str]:
    """What is left once switches with nothing below, or nothing above, are taken away again and again: cycles."""
    left = set(edges)
    while True:
        parents = {child for name in left for child in edges[name]}
        stay = {name for name in left if name in parents and any(child in left for child in edges[name])}
        if stay == left:
            return left
        left = stay


def _find_duplicates(entries: Sequence[Entry]) -> list[Finding]:
    seen: set[str] = set()
    findings = []
    for entry in entries:
        name = entry.switch.name
        if name in seen:
            findings.append(Finding("error", "twice", f"switch {name} is defined twice", entry.line, 1))
        seen.add(name)
    return findings


def _find_bad_children(entries: Sequence[Entry]) -> list[Finding]:
    names = {entry.switch.name for entry in entries}
    findings = []
    for entry in entries:
        switch = entry.switch
        if switch.nodes and switch.switches:
            text = f"switch {switch.name} has both nodes and switches below it: give it one of the two"
            findings.append(Finding("error", "both", text, entry.line, 1))
        for child in unique(switch.switches):
            if child == switch.name:
                findings.append(Finding("error", "cycle", f"cycle through {child}", entry.line, 1))
            elif child not in names:
                text = f"switch {switch.name} lists {child}, which is not defined"
                findings.append(Finding("error", "missing-child", text, entry.line, 1))
    return findings


def _or_unknown(level: int | None) -> int:
    return UNKNOWN_LEVEL if level is None else level
