"""A network or a machine as an outline of lines below lines, for terminal and page alike. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windtunnel.fabric.facts_network import list_roots
from windtunnel.fabric.machine import Device, Machine, nearness
from windtunnel.fabric.topology import Topology, unique
from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.cluster import Switch

_NEAR = nearness("NODE")
"""A link up to this one stays within a NUMA node. Source: nvidia-smi's legend."""


@dataclass(frozen=True)
class Branch:
    """A line, what is said beside it, and the lines below."""

    label: str
    note: str = ""
    below: tuple["Branch", ...] = ()


def outline_topology(topology: Topology) -> tuple[Branch, ...]:
    """Network and machine of a file; nothing where it has neither."""
    return (*outline_network(topology), *(outline_machine(topology.machine) if topology.machine else ()))


def outline_network(topology: Topology) -> tuple[Branch, ...]:
    """Switches from the top, or blocks, with the nodes below each leaf; hosts alone where only they are known."""
    if topology.switches:
        return outline_switches(topology.switches)
    if topology.blocks:
        return tuple(
            Branch(block.name, _describe_nodes(block.nodes)) for block in topology.blocks if not block.aggregated
        )
    return outline_paths({host.name: host.path for host in topology.hosts})


def outline_switches(switches: Sequence[Switch]) -> tuple[Branch, ...]:
    """The tree; switches that have the same ones below them are one line, and a cycle is cut where it closes."""
    by_name = {switch.name: switch for switch in switches}
    groups: dict[tuple[str, ...], list[str]] = {}
    for top in _find_tops(switches, by_name):
        groups.setdefault(top.switches or (top.name, ""), []).append(top.name)
    return tuple(_branch_of(names, by_name, frozenset()) for names in groups.values())


def outline_paths(paths: Mapping[str, Sequence[str] | None]) -> tuple[Branch, ...]:
    """Hosts below the switches of their paths, from the top switch on; those of unknown place are last."""
    tops: dict[str, dict[str, Sequence[str] | None]] = {}
    here = [host for host, path in paths.items() if path is not None and not path]
    lost = [host for host, path in paths.items() if path is None]
    for host, path in paths.items():
        if path:
            tops.setdefault(path[0], {})[host] = path[1:]
    branches = [_branch_of_path(name, inside) for name, inside in tops.items()]
    if here:
        branches.append(Branch("no switch", _describe_nodes(here)))
    if lost:
        branches.append(Branch("unknown place", _describe_nodes(lost)))
    return tuple(branches)


def outline_machine(machine: Machine) -> tuple[Branch, ...]:
    """GPUs and adapters below their NUMA nodes, each GPU with the adapters that are nearest to it."""
    groups: dict[str, list[Device]] = {}
    for device in machine.devices:
        if device.kind in ("gpu", "nic"):
            groups.setdefault(_numa_of(device, machine) or "", []).append(device)
    cpus = {str(node.index): node.cpus for node in machine.numa or ()}
    order = sorted(
        groups, key=lambda numa: (not numa, [int(part) if part.isdecimal() else 0 for part in [numa]], numa)
    )
    return tuple(
        Branch(
            f"NUMA {numa}" if numa else "NUMA unknown",
            _describe_cpus(groups[numa], cpus.get(numa)),
            tuple(Branch(_title(device), _describe_device(device, machine)) for device in groups[numa]),
        )
        for numa in order
    )


def count_lines(branches: Sequence[Branch]) -> int:
    """Lines of an outline."""
    return sum(1 + count_lines(branch.below) for branch in branches)


def walk(branches: Sequence[Branch], depth: int = 0) -> Iterator[tuple[int, Branch]]:
    """Every line with its depth, from the top."""
    for branch in branches:
        yield depth, branch
        yield from walk(branch.below, depth + 1)


def _find_tops(switches: Sequence[Switch], by_name: Mapping[str, Switch]) -> list[Switch]:
    """Switches below no other, and one of each cycle that none of these reaches."""
    tops = list_roots(switches)
    reached: set[str] = set()
    waiting = [top.name for top in tops]
    for candidate in (None, *sorted(switches, key=lambda switch: not switch.switches)):
        if candidate is not None and candidate.name not in reached:
            tops.append(candidate)
            waiting.append(candidate.name)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += [child for child in by_name[name].switches if child in by_name]
    return tops


def _branch_of(names: Sequence[str], by_name: Mapping[str, Switch], above: frozenset[str]) -> Branch:
    first = by_name[names[0]]
    known = [child for child in unique(first.switches) if child in by_name and child not in above | {first.name}]
    below = tuple(_branch_of([child], by_name, above | set(names)) for child in known)
    label = collapse_hostlist(names)
    if first.switches:
        closing = [child for child in unique(first.switches) if child in above | {first.name}]
        return Branch(label, f"a cycle closes at {', '.join(closing)}" if closing else "", below)
    return Branch(label, _describe_nodes(first.nodes))


def _branch_of_path(name: str, inside: Mapping[str, Sequence[str] | None]) -> Branch:
    ends = [host for host, path in inside.items() if not path]
    deeper = {host: path for host, path in inside.items() if path}
    return Branch(name, _describe_nodes(ends) if ends else "", outline_paths(deeper) if deeper else ())


def _describe_nodes(nodes: Sequence[str]) -> str:
    if not nodes:
        return "no nodes"
    count = len(set(nodes))
    return f"{count} node{'s' if count > 1 else ''}: {collapse_hostlist(nodes)}"


def _numa_of(device: Device, machine: Machine) -> str | None:
    """As the file says; an adapter of a link matrix stands where a GPU does that it reaches within the NUMA node."""
    if device.numa not in (None, "", "N/A"):
        return device.numa
    if device.kind != "nic":
        return None
    near = {
        gpu.numa
        for gpu in machine.of_kind("gpu")
        if gpu.numa and (code := machine.link(gpu.name, device.name)) is not None and nearness(code) <= _NEAR
    }
    return near.pop() if len(near) == 1 else None


def _describe_cpus(devices: Sequence[Device], known: str | None) -> str:
    found = {device.cpus for device in devices if device.kind == "gpu" and device.cpus}
    cpus = known or (found.pop() if len(found) == 1 else None)
    return f"CPUs {cpus}" if cpus else "CPUs unknown"


def _title(device: Device) -> str:
    return f"{device.name} ({device.alias})" if device.alias else device.name


def _describe_device(device: Device, machine: Machine) -> str:
    if device.kind == "nic" or not machine.links:
        return ", ".join(part for part in (device.pci, device.model, *device.parts) if part and part != device.name)
    peers = [gpu.name for gpu in machine.of_kind("gpu") if gpu.name != device.name]
    to_peers = [code for peer in peers if (code := machine.link(device.name, peer)) is not None]
    counts = ", ".join(f"{code} to {to_peers.count(code)}" for code in sorted(set(to_peers), key=nearness))
    nics = {nic.name: code for nic in machine.of_kind("nic") if (code := machine.link(device.name, nic.name))}
    best = min(nics.values(), key=nearness, default=None)
    near = f"; nearest {', '.join(nic for nic, code in nics.items() if code == best)} ({best})" if best else ""
    return (counts + near).removeprefix("; ")
