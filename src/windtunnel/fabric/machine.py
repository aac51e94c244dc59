"""The inside of a machine: NUMA nodes, GPUs, network adapters, and the links between them. Pure values."""

from dataclasses import dataclass
from typing import Literal

DeviceKind = Literal["gpu", "nic", "switch", "other"]
LINK_ORDER = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""Codes of nvidia-smi, from near to far. Source: the legend that `nvidia-smi topo -m` prints."""
LINK_ALIASES = {"SOC": "SYS"}
"""Codes that older drivers print."""


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node; `cpus` as a list such as `0-19,40-59`."""

    index: int
    cpus: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Device:
    """A GPU or an adapter. `cpus` and `numa` are as printed: an empty text is a blank cell, None was not readable."""

    name: str
    kind: DeviceKind
    cpus: str | None = None
    numa: str | None = None
    memory_numa: str | None = None
    """NUMA node of its own memory, where it has one."""
    alias: str | None = None
    pci: str | None = None
    bus: tuple[str, ...] = ()
    """Bridges above it, from the CPU on."""
    model: str | None = None
    osdevs: tuple[str, ...] = ()
    """Names that the operating system gives it: `mlx5_0`, `ib0`."""
    parts: tuple[str, ...] = ()
    """MIG profiles it is cut into, in order."""
    uuid: str | None = None


@dataclass(frozen=True)
class Link:
    """What stands in row `a` and column `b` of a link matrix, as printed."""

    a: str
    b: str
    code: str


@dataclass(frozen=True)
class Matrix:
    """A distance or bandwidth matrix: names of its objects, values row by row."""

    name: str
    objects: tuple[str, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """A machine as one tool sees it; a count is None where the tool does not tell."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    rows: tuple[str, ...] = ()
    """Rows of the link matrix that are there."""
    columns: tuple[str, ...] = ()
    """Further columns of the link matrix, by title."""
    numa: tuple[NumaNode, ...] | None = None
    packages: int | None = None
    pus: int | None = None
    pci_devices: int | None = None
    os_devices: tuple[str, ...] | None = None
    nets: int | None = None
    nvlinks: int | None = None
    matrices: tuple[Matrix, ...] = ()
    format_version: str | None = None

    def of_kind(self, kind: DeviceKind) -> tuple[Device, ...]:
        """Devices of a kind, in the file's order."""
        return tuple(device for device in self.devices if device.kind == kind)

    def link(self, a: str, b: str) -> str | None:
        """The code between two devices, from either's row; None where neither row is there."""
        codes = {(link.a, link.b): link.code for link in self.links}
        return codes.get((a, b), codes.get((b, a)))


def normal_code(code: str) -> str:
    """A code of today's drivers."""
    return LINK_ALIASES.get(code, code)


def nearness(code: str) -> int:
    """Rank of a link, 0 the nearest; links of unknown code are last."""
    plain = "NV" if code.startswith("NV") and code[2:].isdigit() else normal_code(code)
    return LINK_ORDER.index(plain) if plain in LINK_ORDER else len(LINK_ORDER)
