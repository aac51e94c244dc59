"""hwloc's XML of versions 1 to 3: packages, NUMA nodes, PCI devices with their localities, distances. Pure.

It is read here rather than by hwloc, since hwloc 2.9 refuses version 3. Source: hwloc's hwloc2.dtd and hwloc.dtd, and
the types of OSDev in include/hwloc.h.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from windtunnel.fabric.cpusets import read_mask, render_list
from windtunnel.fabric.hwloc_matrices import read_matrices
from windtunnel.fabric.machine import Device, DeviceKind, Machine, NumaNode
from windtunnel.fabric.topology import Finding, Kind, Topology

_PCI_CLASS = re.compile(r"\s*([0-9a-fA-F]{4})")
_GPU_OSDEV = re.compile(r"(?:nvml|cuda|rsmi|ze|opencl)\d")
_PACKAGES = frozenset({"Package", "Socket"})
_NIC_CLASSES = ("02", "0c06")
_GPU_CLASSES = ("0302", "1200")
_VGA = "0300"
_NVIDIA = "10de"


@dataclass(frozen=True)
class _Place:
    """Where an object stands: sets of the nearest object that has some, and PCI bridges above."""

    cpus: str | None = None
    numa: str | None = None
    bus: tuple[str, ...] = ()
    device: int | None = None
    """Index of the PCI device around it."""


def read_xml(text: str, kind: Kind, findings: list[Finding]) -> ElementTree.Element | None:
    """The root element; None, and an error with its place, where it is no XML."""
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        findings.append(Finding("error", "xml", f"no XML: {error.msg.partition(':')[0]}", line, column + 1))
    except (ValueError, LookupError, RecursionError) as error:  # an encoding that is unknown or not the text's
        findings.append(Finding("error", "xml", f"no XML: {error}", 1, 1))
    return None


def parse_hwloc(text: str) -> Topology:
    """The machine of an hwloc XML file."""
    findings: list[Finding] = []
    root = read_xml(text, "hwloc", findings)
    if root is None or root.tag not in ("topology", "root"):
        if root is not None:
            findings.append(Finding("error", "not-hwloc", f"the root is <{root.tag}>, not <topology>", 1, 1))
        return Topology("hwloc", findings=tuple(findings))
    objects = list(_walk(root))
    types = [element.get("type", "") for element, _ in objects]
    version = root.get("version") or "1"
    machine = Machine(
        devices=tuple(_find_devices(objects)),
        numa=tuple(_read_numa(element) for element, _ in objects if element.get("type") == "NUMANode"),
        packages=sum(kind in _PACKAGES for kind in types),
        pus=types.count("PU"),
        pci_devices=types.count("PCIDev"),
        os_devices=tuple(e.get("name", "") for e, _ in objects if e.get("type") == "OSDev"),
        matrices=read_matrices(root, findings),
        format_version=version,
    )
    if "Machine" not in types and "System" not in types:
        findings.append(Finding("error", "no-machine", "the file has no object of type Machine", 1, 1))
    return Topology("hwloc", machine=machine, findings=tuple(findings))


def _walk(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, _Place]]:
    """Every object in the file's order, with its place; no recursion, since files nest as deep as they like."""
    waiting = [(child, _Place()) for child in reversed(root.findall("object"))]
    index = -1
    while waiting:
        element, place = waiting.pop()
        yield element, place
        kind = element.get("type")
        if kind == "PCIDev":
            index += 1
            place = replace(place, device=index)
        elif kind == "Bridge":
            place = replace(place, bus=(*place.bus, element.get("pci_busid") or element.get("bridge_pci") or "?"))
        elif "cpuset" in element.attrib:
            place = replace(place, cpus=_as_list(element, "cpuset"), numa=_as_list(element, "nodeset"))
        waiting += [(child, place) for child in reversed(element.findall("object"))]


def _as_list(element: ElementTree.Element, key: str) -> str | None:
    numbers = read_mask(element.get(key, ""))
    return None if numbers is None else render_list(numbers)


def _find_devices(objects: list[tuple[ElementTree.Element, _Place]]) -> Iterator[Device]:
    """PCI devices with what the operating system calls them, and GPUs that are on no PCI bus."""
    names: dict[int, list[str]] = {}
    lone = []
    for element, place in objects:
        if element.get("type") == "OSDev":
            name = element.get("name", "")
            if place.device is not None:
                names.setdefault(place.device, []).append(name)
            elif _GPU_OSDEV.match(name):
                lone.append(Device(name, "gpu", cpus=place.cpus, numa=place.numa, osdevs=(name,)))
    pcis = [(element, place) for element, place in objects if element.get("type") == "PCIDev"]
    for index, (element, place) in enumerate(pcis):
        yield _make_device(element, place, tuple(names.get(index, ())))
    yield from lone


def _make_device(element: ElementTree.Element, place: _Place, osdevs: tuple[str, ...]) -> Device:
    busid = element.get("pci_busid", "")
    kind = _kind_of(element.get("pci_type", ""), element.get("subtype"), osdevs)
    known = osdevs[-1] if kind == "nic" and osdevs else osdevs[0] if osdevs else busid
    return Device(
        known,
        kind,
        cpus=place.cpus,
        numa=place.numa,
        pci=busid or None,
        bus=place.bus,
        osdevs=osdevs,
        model=element.get("subtype"),
    )


def _kind_of(pci_type: str, subtype: str | None, osdevs: tuple[str, ...]) -> DeviceKind:
    match = _PCI_CLASS.match(pci_type)
    number = match[1].lower() if match else ""
    if any(_GPU_OSDEV.match(name) for name in osdevs) or number in _GPU_CLASSES:
        return "gpu"
    if number == _VGA and f"[{_NVIDIA}:" in pci_type.lower():
        return "gpu"
    if subtype == "NVSwitch":
        return "switch"
    return "nic" if number.startswith(_NIC_CLASSES) else "other"


def _read_numa(element: ElementTree.Element) -> NumaNode:
    index, memory = element.get("os_index", ""), element.get("local_memory", "")
    return NumaNode(
        int(index[:9]) if index.isdecimal() else -1,
        cpus=_as_list(element, "cpuset"),
        memory_bytes=int(memory[:18]) if memory.isdecimal() else None,
    )
