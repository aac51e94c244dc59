"""The network as a tree: the switches above each node, and how far two nodes are apart. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.cluster import Switch


def find_switch_paths(switches: Sequence[Switch]) -> dict[str, tuple[str, ...]]:
    """Host to the switches above it, from the top of the tree to its leaf.

    Where several switches of one level are above a host (spines that share leaves), that level is
    one entry, their host list, as in SLURM_TOPOLOGY_ADDR. A host on two leaves keeps the first.
    """
    by_name = {switch.name: switch for switch in switches}
    parents: dict[str, list[str]] = {}
    for switch in switches:
        for below in switch.switches:
            parents.setdefault(below, []).append(switch.name)
    paths: dict[str, tuple[str, ...]] = {}
    for leaf in (switch for switch in switches if not switch.switches):
        path = _path_above(leaf, by_name, parents)
        for host in leaf.nodes:
            paths.setdefault(host, path)
    return paths


def count_levels_left(from_path: Sequence[str], to_path: Sequence[str]) -> int:
    """Levels of switches that a message climbs between two hosts: 0 below one leaf, 1 over one spine."""
    shared = 0
    for one, other in zip(from_path, to_path, strict=False):
        if one != other:
            break
        shared += 1
    return max(len(from_path), len(to_path)) - shared


def _path_above(leaf: Switch, by_name: Mapping[str, Switch], parents: Mapping[str, list[str]]) -> tuple[str, ...]:
    levels: dict[int, list[str]] = {}
    for name in _ancestors(leaf.name, parents):
        levels.setdefault(by_name[name].level, []).append(name)
    above = (collapse_hostlist(sorted(levels[level])) for level in sorted(levels, reverse=True))
    return (*above, leaf.name)


def _ancestors(name: str, parents: Mapping[str, Iterable[str]]) -> list[str]:
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            # A cable that closes a loop must not make this one endless.
            if parent not in found and parent != name:
                found[parent] = None
                waiting.append(parent)
    return list(found)
