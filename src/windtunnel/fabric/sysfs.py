"""A machine from Linux's sysfs: NUMA nodes, GPUs and adapters by PCI class, with their localities. Pure.

The caller reads the files; a path is relative to /sys, such as `bus/pci/devices/0000:04:00.0/numa_node`. There, -1
means that the firmware does not say. Source: Linux's Documentation/ABI/testing/sysfs-bus-pci and sysfs-devices-node.
"""

import re
from collections.abc import Mapping

from windtunnel.fabric.machine import Device, DeviceKind, Machine, Matrix, NumaNode
from windtunnel.fabric.topology import Finding, Topology

PATTERNS = (
    "bus/pci/devices/*/class",
    "bus/pci/devices/*/numa_node",
    "bus/pci/devices/*/local_cpulist",
    "bus/pci/devices/*/net/*/mtu",
    "bus/pci/devices/*/virtio*/net/*/mtu",
    "bus/pci/devices/*/infiniband/*/node_guid",
    "devices/system/node/node*/cpulist",
    "devices/system/node/node*/distance",
    "devices/system/node/node*/meminfo",
)
"""Files that are read here, as globs below /sys."""
_DEVICE = re.compile(r"bus/pci/devices/([^/]+)/(class|numa_node|local_cpulist)")
_NAME = re.compile(r"bus/pci/devices/([^/]+)/(?:virtio\d+/)?(?:net|infiniband)/([^/]+)/")
_NODE = re.compile(r"devices/system/node/node(\d+)/(cpulist|distance|meminfo)")
_TOTAL = re.compile(r"MemTotal:\s*(\d+) kB")
_KINDS: tuple[tuple[str, DeviceKind], ...] = (
    ("0x0302", "gpu"),
    ("0x1200", "gpu"),
    ("0x02", "nic"),
    ("0x0c06", "nic"),
)


def parse_sysfs(files: Mapping[str, str]) -> Topology:
    """The machine that these files describe."""
    findings: list[Finding] = []
    devices: dict[str, dict[str, str]] = {}
    names: dict[str, list[str]] = {}
    nodes: dict[int, dict[str, str]] = {}
    for path, text in sorted(files.items()):
        if match := _DEVICE.fullmatch(path):
            devices.setdefault(match[1], {})[match[2]] = text.strip()
        elif match := _NAME.match(path):
            names.setdefault(match[1], []).append(match[2])
        elif match := _NODE.fullmatch(path):
            nodes.setdefault(int(match[1][:9]), {})[match[2]] = text
    machine = Machine(
        devices=tuple(
            _make_device(busid, fields, tuple(names.get(busid, ())))
            for busid, fields in devices.items()
            if _kind_of(fields.get("class", "")) is not None
        ),
        numa=tuple(_make_node(index, fields) for index, fields in sorted(nodes.items())) or None,
        pci_devices=len(devices),
        os_devices=tuple(name for busid in devices for name in names.get(busid, ())),
        matrices=_read_distances(nodes, findings),
    )
    return Topology("sysfs", machine=machine, findings=tuple(findings))


def _kind_of(number: str) -> DeviceKind | None:
    return next((kind for prefix, kind in _KINDS if number.startswith(prefix)), None)


def _make_device(busid: str, fields: Mapping[str, str], names: tuple[str, ...]) -> Device:
    numa = fields.get("numa_node", "")
    return Device(
        names[0] if names else busid,
        _kind_of(fields["class"]) or "other",
        cpus=fields.get("local_cpulist"),
        numa=numa if numa.isdecimal() else None,
        pci=busid,
        osdevs=names,
    )


def _make_node(index: int, fields: Mapping[str, str]) -> NumaNode:
    total = _TOTAL.search(fields.get("meminfo", ""))
    cpus = fields.get("cpulist")
    return NumaNode(index, None if cpus is None else cpus.strip(), int(total[1][:15]) * 1024 if total else None)


def _read_distances(nodes: Mapping[int, Mapping[str, str]], findings: list[Finding]) -> tuple[Matrix, ...]:
    rows = [fields["distance"].split() for _, fields in sorted(nodes.items()) if "distance" in fields]
    values = tuple(int(word[:9]) for row in rows for word in row if word.isdecimal())
    if not rows or len(values) != len(nodes) ** 2:
        if rows:
            findings.append(Finding("warning", "short-matrix", "the distances of NUMA nodes are not a square"))
        return ()
    return (Matrix("NUMALatency", tuple(f"NUMANode:{index}" for index in sorted(nodes)), values),)
