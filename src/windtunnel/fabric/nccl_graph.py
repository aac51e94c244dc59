"""NCCL's topology XML, of NCCL_TOPO_DUMP_FILE or as clouds ship it for NCCL_TOPO_FILE. Pure.

Elements: `system`, `cpu` (NUMA node), `pci` (a bridge, or a device by its class), `gpu`, `nic`, `net`, `nvlink`.
Source: NCCL's src/graph/xml.cc and topo.cc, whose table of PCI classes is that of `_KINDS`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from windtunnel.fabric.cpusets import read_mask, render_list
from windtunnel.fabric.hwloc import read_xml
from windtunnel.fabric.machine import Device, DeviceKind, Machine, NumaNode
from windtunnel.fabric.topology import Finding, Topology

_KINDS: tuple[tuple[str, DeviceKind], ...] = (
    ("0x0680", "switch"),
    ("0x03", "gpu"),
    ("0x1200", "gpu"),
    ("0x02", "nic"),
)


@dataclass(frozen=True)
class _Place:
    cpus: str | None = None
    numa: str | None = None
    bus: tuple[str, ...] = ()
    kind: DeviceKind = "other"
    """Kind of the nearest PCI element above."""


def parse_graph(text: str) -> Topology:
    """The machine of an NCCL topology file."""
    findings: list[Finding] = []
    root = read_xml(text, "nccl-graph", findings)
    if root is None or root.tag != "system":
        if root is not None:
            findings.append(Finding("error", "not-nccl", f"the root is <{root.tag}>, not <system>", 1, 1))
        return Topology("nccl-graph", findings=tuple(findings))
    elements = list(_walk(root))
    if not any(element.tag == "cpu" for element, _ in elements):
        findings.append(Finding("error", "no-cpu", "<system> has no <cpu>", 1, 1))
    machine = Machine(
        devices=tuple(_find_devices(elements)),
        numa=tuple(_read_numa(element) for element, _ in elements if element.tag == "cpu"),
        pci_devices=sum(element.tag == "pci" for element, _ in elements),
        nets=sum(element.tag == "net" for element, _ in elements),
        nvlinks=sum(element.tag == "nvlink" for element, _ in elements),
        format_version=root.get("version"),
    )
    return Topology("nccl-graph", machine=machine, findings=tuple(findings))


def _walk(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, _Place]]:
    waiting = [(child, _Place()) for child in reversed(root)]
    while waiting:
        element, place = waiting.pop()
        yield element, place
        if element.tag == "cpu":
            place = replace(place, cpus=_cpus_of(element), numa=_numa_of(element))
        elif element.tag == "pci":
            kind = _kind_of(element)
            bus = (*place.bus, element.get("busid", "")) if kind == "other" else place.bus
            place = replace(place, bus=bus, kind=kind)
        waiting += [(child, place) for child in reversed(element)]


def _find_devices(elements: list[tuple[ElementTree.Element, _Place]]) -> Iterator[Device]:
    for element, place in elements:
        kind = _kind_of(element) if element.tag == "pci" else "other"
        busid = element.get("busid")
        if element.tag == "pci" and kind != "other":
            names = tuple(filter(None, (net.get("name") for net in element.iter("net"))))
            gpu = element.find("gpu")
            name = names[0] if names else f"GPU{gpu.get('dev')}" if gpu is not None else busid or "?"
            yield Device(name, kind, cpus=place.cpus, numa=place.numa, pci=busid, bus=place.bus, osdevs=names)
        elif (
            element.tag == "nic" and place.kind != "nic"
        ):  # one that is on no PCI bus, as sockets in a virtual machine
            names = tuple(filter(None, (net.get("name") for net in element.iter("net"))))
            yield Device(names[0] if names else "nic", "nic", cpus=place.cpus, numa=place.numa, osdevs=names)


def _kind_of(pci: ElementTree.Element) -> DeviceKind:
    number = pci.get("class", "").lower()
    found = next((kind for prefix, kind in _KINDS if number.startswith(prefix)), None)
    if found is not None:
        return found
    # A file that a user wrote may lack classes; what is inside says it too.
    inside = {child.tag for child in pci}
    return "gpu" if "gpu" in inside else "nic" if "nic" in inside else "other"


def _cpus_of(cpu: ElementTree.Element) -> str | None:
    numbers = read_mask(cpu.get("affinity", ""))
    return None if numbers is None else render_list(numbers)


def _numa_of(cpu: ElementTree.Element) -> str | None:
    """-1 is NCCL's word for unknown."""
    number = cpu.get("numaid", "")
    return number if number.isdecimal() else None


def _read_numa(cpu: ElementTree.Element) -> NumaNode:
    number = _numa_of(cpu)
    return NumaNode(-1 if number is None else int(number[:9]), _cpus_of(cpu))
