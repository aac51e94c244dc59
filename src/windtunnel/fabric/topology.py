"""What a file says of a cluster's network and of its machines: the one value that every parser here gives. Pure.

None always means that the file does not say; oddities and mistakes are findings with their place, not exceptions.
`records.cluster.Topology` is another thing: the facts of a partition that the topology stage keeps.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from windtunnel.fabric.machine import Machine
from windtunnel.fabric.timings import Timings
from windtunnel.gres import Gres
from windtunnel.records.cluster import Switch

Kind = Literal[
    "topology.conf",
    "topology.yaml",
    "scontrol-topology",
    "topology-address",
    "scontrol-node",
    "slurm.conf",
    "sinfo",
    "gres",
    "nvidia-smi-topo",
    "nvidia-smi-p2p",
    "nvidia-smi-list",
    "hwloc",
    "nccl-graph",
    "ibnetdiscover",
    "sysfs",
    "nccl-tests",
    "osu",
]
NETWORKS: frozenset[Kind] = frozenset({"topology.conf", "topology.yaml", "scontrol-topology", "ibnetdiscover"})
"""Kinds that describe a network."""
UNKNOWN_LEVEL = -1
"""Level of a switch that a cycle or a missing child leaves open."""


@dataclass(frozen=True)
class Finding:
    """Something odd: an error makes the file unusable, a warning leaves something unknown or doubtful."""

    severity: Literal["error", "warning"]
    code: str
    text: str
    line: int | None = None
    column: int | None = None
    """Both count from 1."""


@dataclass(frozen=True)
class Block:
    """A block of topology/block; an aggregated one names others again."""

    name: str
    nodes: tuple[str, ...]
    size: int | None = None
    """Nodes that Slurm counts it for; None where it is not said."""
    aggregated: bool = False


@dataclass(frozen=True)
class Host:
    """A node as Slurm or the fabric tells of it; None is unknown. `path` runs from the top switch to the leaf."""

    name: str
    path: tuple[str, ...] | None = None
    cpus: int | None = None
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    gres_text: str | None = None
    gres: Gres | None = None
    gres_used: Gres | None = None
    tres_gpus: int | None = None
    """GPUs of CfgTRES, which lists them only where AccountingStorageTRES names them."""
    state: str | None = None
    weight: int | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Topology:
    """What one file says; parts that its kind does not speak of are empty or None."""

    kind: Kind
    plugin: str | None = None
    """`tree`, `block`, `flat` …, as of Slurm's topology plugins."""
    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] | None = None
    """Nodes of a block at each level, as configured."""
    hosts: tuple[Host, ...] = ()
    records: int | None = None
    """Lines or records read, where a file may tell of one host twice."""
    cables: int | None = None
    """Cables between all devices, switches and adapters."""
    lines: tuple[tuple[str, Gres], ...] = ()
    """Gres strings as written, and what they mean."""
    machine: Machine | None = None
    timings: Timings | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that make it unusable."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def find(self, code: str) -> tuple[Finding, ...]:
        """Findings of one code."""
        return tuple(finding for finding in self.findings if finding.code == code)


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order of first appearance."""
    return tuple(dict.fromkeys(names))
