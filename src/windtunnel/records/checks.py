"""What is found of trained models after the sweep: whole checkpoints, and inference latency."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class CheckpointCheck:
    """A checkpoint and whether every byte of it is what its manifest says."""

    trial_id: str
    path: str
    """Absolute."""
    step: int
    bytes: int
    verified: bool
    reason: str
    """What was wrong; empty when it verified."""


@dataclass(frozen=True)
class CheckpointReport:
    """`checkpoints.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.checkpoints/1"

    study: str
    checks: tuple[CheckpointCheck, ...]


@dataclass(frozen=True)
class LatencyRow:
    """Single-sample inference of one trial's final model, in microseconds."""

    trial_id: str
    name: str
    p50_us: float
    p99_us: float
    p999_us: float
    samples: int
    discarded: int
    host: str
    device: str


@dataclass(frozen=True)
class Latency:
    """`latency.json`; trials without a verified checkpoint are named in `skipped` with the reason."""

    SCHEMA: ClassVar[str] = "windtunnel.latency/1"

    study: str
    rows: tuple[LatencyRow, ...]
    skipped: dict[str, str]
