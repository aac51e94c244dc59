"""What slurmctld 22.05.8 complains of first when it reads a topology.conf of topology/tree. Pure.

Source: its src/plugins/topology/tree/topology_tree.c, `_parse_switches` and `_validate_switches`; each message here
was compared with the daemon's own.
"""

from collections.abc import Sequence

from windtunnel.fabric.topology import Topology
from windtunnel.records.cluster import Switch

_MOST_PASSES = 20
_OPEN = -1
_PARSING = frozenset({"no-children", "both", "unknown-key", "no-pair", "link-speed"})


def judge_by_slurm(topology: Topology) -> str | None:
    """The message, without paths; None where the daemon starts, or for another kind of file."""
    if topology.kind != "topology.conf" or topology.plugin != "tree":
        return None
    return _judge_parsing(topology) or _judge_names(topology.switches) or _judge_levels(topology.switches)


def _judge_parsing(topology: Topology) -> str | None:
    found = [finding for finding in topology.findings if finding.code in _PARSING]
    if not found:
        return None
    first = min(found, key=lambda finding: finding.line or 0)
    name = first.text.split()[1]
    if first.code == "no-children":
        return f"error: switch {name} has neither child switches nor nodes"
    if first.code == "both":
        return f"error: switch {name} has both child switches and nodes"
    return "fatal: something wrong with opening/reading"


def _judge_names(switches: Sequence[Switch]) -> str | None:
    seen: set[str] = set()
    for switch in switches:
        if switch.name in seen:
            return f"fatal: Switch ({switch.name}) has already been defined"
        seen.add(switch.name)
    return None


def _judge_levels(switches: Sequence[Switch]) -> str | None:
    levels = {switch.name: 0 if switch.nodes or not switch.switches else _OPEN for switch in switches}
    for _ in range(_MOST_PASSES + 1):
        before = dict(levels)
        for switch in switches:
            if levels[switch.name] != _OPEN:
                continue
            wrong = _resolve(switch, levels)
            if wrong is not None:
                return f"fatal: Switch configuration {switch.name} has invalid child ({wrong})"
        if _OPEN not in levels.values():
            return None
        if levels == before:
            break
    return "fatal: Switch configuration is not a tree"


def _resolve(switch: Switch, levels: dict[str, int]) -> str | None:
    """Set the switch's level where its children have theirs, looked at from the last; a child that cannot be one."""
    level = _OPEN
    for child in reversed(switch.switches):
        if child not in levels or child == switch.name:
            return child
        if levels[child] == _OPEN:
            return None
        level = max(level, levels[child] + 1)
    levels[switch.name] = level
    return None
