"""Facts about a partition: its nodes and switches, and what was measured inside a job there."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Node:
    """A node as Slurm describes it; `switches` from the top of the tree to its leaf, empty when unknown."""

    name: str
    cpus: int
    mem_mib: int
    gpus: int
    state: str
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Switch:
    """A switch (or block) of the network as Slurm describes it; a leaf has level 0 and no switches below."""

    name: str
    level: int
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    """Switches directly below."""
    link_speed: int | None = None
    """In the unit that the administrator chose; None where nothing is said."""


@dataclass(frozen=True)
class Topology:
    """`topology.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.topology/1"

    partition: str
    source: str
    """Where it was read: `slurm` or `local`."""
    nodes: tuple[Node, ...]
    max_time_min: int | None
    """The partition's time limit; null for none."""
    fingerprint: str
    """Hash of what the facts depend on: nodes, software and configuration."""


@dataclass(frozen=True)
class CollectiveTiming:
    """One collective at one size, median over repeats; busbw as nccl-tests defines it."""

    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes: int
    median_s: float
    spread_s: float
    repeats: int
    busbw_gbps: float
    """Gigabytes a second: bytes x 2 (n - 1) / n / seconds for an all-reduce."""


@dataclass(frozen=True)
class Collectives:
    """`collectives.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.collectives/1"

    partition: str
    fingerprint: str
    hosts: tuple[str, ...]
    timings: tuple[CollectiveTiming, ...]


@dataclass(frozen=True)
class Rate:
    """One attainable rate: median, spread and count of repeats, after discarding the first."""

    name: str
    value: float
    spread: float
    unit: str
    repeats: int


@dataclass(frozen=True)
class DeviceFacts:
    """`device.json`: what one device of the partition attains."""

    SCHEMA: ClassVar[str] = "windtunnel.device/1"

    partition: str
    fingerprint: str
    host: str
    device: str
    kind: str
    """`cpu` or `cuda`."""
    cpus: int
    mem_mib: int
    rates: tuple[Rate, ...]


@dataclass(frozen=True)
class Operation:
    """One operator call of a forward pass: shapes, and floating-point operations where it has a formula."""

    name: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shapes: tuple[tuple[int, ...], ...]
    flops: int


@dataclass(frozen=True)
class ModelTrace:
    """A model's operations at one batch size, on the meta device."""

    name: str
    target: str
    params: int
    batch_size: int
    forward_flops: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Models:
    """`models.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.models/1"

    models: tuple[ModelTrace, ...]
