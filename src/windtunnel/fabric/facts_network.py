"""Facts of networks: switches and blocks. Pure."""

from collections.abc import Iterable
from typing import Any

from windtunnel.fabric.slurm_address import list_parents
from windtunnel.fabric.slurm_verdict import judge_by_slurm
from windtunnel.fabric.topology import Topology, unique
from windtunnel.records.cluster import Switch

_CATCH_ALL = "unknown"
"""Name of the switch under which an operator puts nodes of unknown place."""
_RELEASE_THAT_IS_JUDGED = "slurm_22_05_8"


def list_nodes(topology: Topology) -> tuple[str, ...]:
    """Every node of the network once."""
    of_switches = (node for switch in topology.switches for node in switch.nodes)
    of_blocks = (node for block in topology.blocks for node in block.nodes)
    return unique([*of_switches, *of_blocks, *(host.name for host in topology.hosts)])


def list_leaves(switches: Iterable[Switch]) -> list[Switch]:
    """Switches without switches below."""
    return [switch for switch in switches if not switch.switches]


def list_roots(switches: Iterable[Switch]) -> list[Switch]:
    """Switches that are below no other."""
    found = list(switches)
    below = {child for switch in found for child in switch.switches}
    return [switch for switch in found if switch.name not in below]


def has_several_parents(switches: Iterable[Switch]) -> bool:
    """Whether some switch is below two others."""
    children = [child for switch in switches for child in unique(switch.switches)]
    return len(set(children)) != len(children)


def collect_network_facts(topology: Topology) -> dict[str, Any]:
    """Facts of a network of switches, of blocks, or of neither."""
    unread = topology.find("unreadable-list")
    nodes = list_nodes(topology)
    facts: dict[str, Any] = {
        "plugin": topology.plugin,
        "nodes": None if unread or (topology.errors and not nodes) else len(nodes),
        "usable": not topology.errors and bool(nodes),
        "glued": bool(topology.find("glued")),
        "records": topology.records,
    }
    if topology.cables is not None:
        facts["links"] = topology.cables
    if topology.plugin == "block":
        facts |= _collect_block_facts(topology)
    elif topology.switches:
        facts |= _collect_tree_facts(topology)
    return facts


def collect_address_facts(topology: Topology) -> dict[str, Any]:
    """Facts of nodes that each tell their own place."""
    levels = {len(host.path) for host in topology.hosts if host.path is not None}
    tops = {host.path[0] for host in topology.hosts if host.path}
    return {
        "plugin": topology.plugin,
        "nodes": None if topology.records != len(topology.hosts) else len(topology.hosts),
        "levels": levels.pop() if len(levels) == 1 else None,
        "parents": list(list_parents(topology)),
        "root": tops.pop() if len(tops) == 1 else None,
        "paths": {host.name: None if host.path is None else list(host.path) for host in topology.hosts},
    }


def _collect_tree_facts(topology: Topology) -> dict[str, Any]:
    switches = topology.switches
    leaves, roots = list_leaves(switches), list_roots(switches)
    levels = [switch.level for switch in switches]
    known = not topology.errors and min(levels) >= 0
    sizes = [len(unique(leaf.nodes)) for leaf in leaves]
    speeds = [switch.link_speed for switch in switches]
    unread = topology.find("unreadable-list")
    return {
        "switches": len(switches),
        "levels": max(levels) + 1 if known else None,
        "max_level": max(levels) if known else None,
        "roots": len(roots),
        "root": roots[0].name if len(roots) == 1 else None,
        "leaves": len(leaves),
        "leaf_switches": len(leaves),
        "groups": levels.count(1),
        "nodes_per_leaf": None if unread else sizes[0] if len(set(sizes)) == 1 else sizes,
        "multi_parent": has_several_parents(switches),
        "linkspeed": speeds if any(speed is not None for speed in speeds) else None,
        "unknown_nodes": sorted({n for s in switches if s.name.lower() == _CATCH_ALL for n in s.nodes}),
        "commented_switches": len(topology.find("commented-switch")),
        _RELEASE_THAT_IS_JUDGED: judge_by_slurm(topology),
    }


def _collect_block_facts(topology: Topology) -> dict[str, Any]:
    base = [block for block in topology.blocks if not block.aggregated]
    sizes = topology.block_sizes
    stated = {block.size for block in base}
    counts = [len(block.nodes) for block in base]
    unread = topology.find("unreadable-list")
    return {
        "blocks": len(base),
        "aggregated_blocks": len(topology.blocks) - len(base),
        "block_sizes": None if sizes is None else list(sizes),
        "block_size": stated.pop() if len(stated) == 1 else None,
        "levels": None if sizes is None else len(sizes),
        "nodes_per_block": None if unread else counts,
        "commented_blocks": len(topology.find("commented-block")),
    }
