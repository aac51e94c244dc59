"""`ibnetdiscover`'s topology file: switches, adapters and cables of an InfiniBand fabric. Pure.

Grammar: a section a device, `Switch|Ca|Rt <ports> "<S|H|R>-<guid>" # "<description>" …`, then a line a port that has
a cable: `[port] … "<id of the other>"[port] …`. The file has no levels: a switch with adapters is a leaf, and the
others are one higher than the nearest of those they reach. Source: rdma-core's infiniband-diags/ibnetdiscover.c.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from windtunnel.fabric.graph import find_switch_paths
from windtunnel.fabric.topology import UNKNOWN_LEVEL, Finding, Host, Topology, unique
from windtunnel.records.cluster import Switch

_SECTION = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"([SHR])-([0-9a-fA-F]+)"(?:\s*#\s*"([^"]*)")?')
_PORT = re.compile(r'^\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-fA-F]+\))?\s*"([SHR])-([0-9a-fA-F]+)"\[(\d+)\]')
_DESCRIPTION = re.compile(r'#[^"]*"([^"]*)"')
_ADAPTER = re.compile(r"(\S+)\s+(?:HCA-\d+|(?:mlx|hfi|qib|ib)\w*_\d+|mlx\d+)")
_NO_NAMES = frozenset({"localhost", "(none)", "localhost.localdomain"})
_AGGREGATION = "Aggregation Node"
"""What switches with in-network reduction show beside themselves; no host."""


@dataclass
class _Device:
    kind: str
    guid: str
    description: str
    line: int
    neighbours: list[str] = field(default_factory=list)
    """Ids, one a cable."""
    ports: list[tuple[str, str]] = field(default_factory=list)
    """Of each cable: the port here, and at the other end."""


def is_section(line: str) -> bool:
    """Whether a line begins a device."""
    return _SECTION.match(line) is not None


def parse_ibnetdiscover(text: str) -> Topology:
    """Switches with levels and hosts below; cables to devices that the file does not describe are findings."""
    findings: list[Finding] = []
    devices = _read_devices(text, findings)
    names = _name_all(devices, findings)
    switches = _read_tree(devices, names, findings)
    paths = find_switch_paths(switches)
    adapters = [names[key] for key, device in devices.items() if device.kind == "H" and key in names]
    hosts = tuple(Host(name, path=paths.get(name)) for name in unique(adapters))
    if not devices:
        findings.append(Finding("error", "empty", "the file has no Switch and no Ca section", 1, 1))
    return Topology(
        "ibnetdiscover",
        plugin="tree" if switches else None,
        switches=switches,
        hosts=hosts,
        records=len(devices),
        cables=_count_cables(devices),
        findings=tuple(findings),
    )


def _read_devices(text: str, findings: list[Finding]) -> dict[str, _Device]:
    devices: dict[str, _Device] = {}
    others: dict[str, tuple[str, int]] = {}
    current: _Device | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _SECTION.match(line):
            current = _Device(match[2], match[3], (match[4] or "").strip(), number)
            devices.setdefault(f"{match[2]}-{match[3]}", current)
        elif match := _PORT.match(line):
            if current is None:
                findings.append(Finding("warning", "no-device", "a port stands before any device", number, 1))
            else:
                current.neighbours.append(f"{match[2]}-{match[3]}")
                current.ports.append((match[1], match[4]))
                said = _DESCRIPTION.search(line, match.end())
                others.setdefault(f"{match[2]}-{match[3]}", (said[1].strip() if said else "", number))
        elif line.startswith("["):
            findings.append(Finding("warning", "cut-record", "the line of a port is cut short", number, 1))
    for key in sorted(others.keys() - devices.keys()):
        text_of = f"a cable goes to {key}, which has no section: its other cables are unknown"
        findings.append(Finding("warning", "undescribed", text_of, others[key][1], 1))
    return devices | {
        key: _Device(key[0], key[2:], description, line)
        for key, (description, line) in others.items()
        if key not in devices
    }


def _name_all(devices: Mapping[str, _Device], findings: list[Finding]) -> dict[str, str]:
    """Name of each switch and host: its description where that is its own, else its id."""
    described = [device.description for device in devices.values()]
    names = {}
    for key, device in devices.items():
        if device.kind == "S":
            own = device.description and described.count(device.description) == 1
            names[key] = device.description if own else key
        elif device.kind == "H" and _AGGREGATION not in device.description:
            match = _ADAPTER.fullmatch(device.description)
            # A host has an adapter of one name once: two that say the same are of hosts that were never named.
            own = match is not None and match[1] not in _NO_NAMES and described.count(device.description) == 1
            names[key] = match[1] if match is not None and own else key
            if not own:
                text = f"adapter {key} does not say its host: {device.description!r}"
                findings.append(Finding("warning", "unnamed-host", text, device.line, 1))
    return names


def _read_tree(
    devices: Mapping[str, _Device], names: Mapping[str, str], findings: list[Finding]
) -> tuple[Switch, ...]:
    cables = _join_cables(devices)
    levels = _find_levels(devices, names, cables)
    switches = []
    for key, device in devices.items():
        if device.kind != "S":
            continue
        level = levels.get(key)
        others = [other for other in unique(cables[key]) if other in names]
        hosts = unique(names[other] for other in others if other.startswith("H"))
        known = [other for other in others if level is not None and levels.get(other) is not None]
        below = tuple(names[other] for other in known if levels[other] == (level or 0) - 1)
        if any(levels[other] == level for other in known):
            text = f"switch {names[key]} has a cable to one of its own level: the fabric is no tree"
            findings.append(Finding("warning", "not-a-tree", text, device.line, 1))
        switches.append(Switch(names[key], UNKNOWN_LEVEL if level is None else level, hosts, below))
    return tuple(switches)


def _count_cables(devices: Mapping[str, _Device]) -> int:
    """Each once, though both ends tell of it."""
    ends = (
        frozenset({(key, here), (other, there)})
        for key, device in devices.items()
        for other, (here, there) in zip(device.neighbours, device.ports, strict=True)
    )
    return len(set(ends))


def _join_cables(devices: Mapping[str, _Device]) -> dict[str, list[str]]:
    """Neighbours of each device, also where only the other end's section is there."""
    cables: dict[str, list[str]] = {key: list(device.neighbours) for key, device in devices.items()}
    for key, device in devices.items():
        for other in device.neighbours:
            if other in cables and key not in cables[other]:
                cables[other].append(key)
    return cables


def _find_levels(
    devices: Mapping[str, _Device], names: Mapping[str, str], cables: Mapping[str, list[str]]
) -> dict[str, int]:
    switches = [key for key, device in devices.items() if device.kind == "S"]
    front = [key for key in switches if any(other.startswith("H") and other in names for other in cables[key])]
    levels = dict.fromkeys(front, 0)
    while front:
        level = levels[front[0]] + 1
        reached = unique(other for key in front for other in cables[key] if other in devices and other[0] == "S")
        front = [key for key in reached if key not in levels]
        levels.update(dict.fromkeys(front, level))
    return levels
