"""What `windtunnel topology bench` measured: times of operations between parts of the network."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class SizeTiming:
    """One size, median over repeats of the slowest rank; bandwidths as nccl-tests defines them."""

    bytes: int
    median_s: float
    spread_s: float
    """Median distance from the median."""
    repeats: int
    algbw_gbps: float
    busbw_gbps: float


@dataclass(frozen=True)
class BenchCase:
    """An operation between ranks, one a line of `hosts`, that are no farther apart than `level`."""

    level: str
    operation: str
    ranks: tuple[int, ...]
    """Of the measurement's world, in the order of the operation's."""
    hosts: tuple[str, ...]
    sizes_bytes: tuple[int, ...]


@dataclass(frozen=True)
class CaseTimings:
    """A case and what it took."""

    case: BenchCase
    timings: tuple[SizeTiming, ...]


@dataclass(frozen=True)
class FabricBench:
    """`fabric.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.fabric-bench/1"

    backend: str
    interface: str
    hosts: tuple[str, ...]
    """Of each rank of the measurement."""
    cases: tuple[CaseTimings, ...]
