"""Where a trial's wall time went, over all its attempts, and the marks that rank 0 leaves of its own."""

from dataclasses import dataclass
from enum import StrEnum

TIMELINE = "timeline.jsonl"
"""In an attempt's folder: one Mark a line."""


class Phase(StrEnum):
    """What a rank begins at a mark."""

    START_UP = "start_up"
    RESTORE = "restore"
    TRAIN = "train"
    STALL = "stall"
    DRAIN = "drain"
    EVALUATE = "evaluate"


class Bucket(StrEnum):
    """What time went into; every second of a trial is in one of them."""

    PRODUCTIVE = "productive"
    """One pass of every step."""
    REPLAY = "replay"
    """Steps that were taken before, and steps that nobody saw finished before a rank died."""
    STALL = "stall"
    """Training waits for a checkpoint."""
    QUEUE = "queue"
    """From a submission to its attempt's start, and between attempts."""
    START_UP = "start_up"
    RESTORE = "restore"
    HANG = "hang"
    """From the last sign of a rank that got no further to the attempt's end."""
    DRAIN = "drain"
    """From a stop, or the last step, to the attempt's end; evaluation left out."""
    EVALUATE = "evaluate"
    UNKNOWN = "unknown"
    """Of attempts that left no marks though they took steps."""


@dataclass(frozen=True)
class Mark:
    """A line of `timeline.jsonl`: a phase begins."""

    phase: Phase
    at: float
    """Seconds since 1970 UTC; within one process they never go back."""
    step: int
    """Steps that are finished by then."""


@dataclass(frozen=True)
class Trace:
    """What an attempt left besides its events."""

    marks: tuple[Mark, ...] = ()
    hung_since: float | None = None
    """When the first of its ranks that gave up waiting had begun to; None where none did."""
    last_sign: float = 0.0
    """Its records' last change, or now while it lives, in seconds since 1970; 0 for none."""
    foreign: bool = False
    """Whether it ran a program that leaves no marks."""


@dataclass(frozen=True)
class AttemptGoodput:
    """One attempt's part."""

    attempt: int
    began_at: float
    ended_at: float
    """Seconds since 1970 UTC, in the ledger's order even where clocks of hosts differ."""
    seconds: dict[Bucket, float]
    new_steps: int
    """Steps that no attempt had finished before."""


@dataclass(frozen=True)
class Goodput:
    """A trial's, from its first submission, or start where nobody submitted it, to its end or to now."""

    wall_s: float
    seconds: dict[Bucket, float]
    """Of every bucket; they add up to `wall_s`."""
    new_steps: int
    attempts: tuple[AttemptGoodput, ...]

    @property
    def productive_share(self) -> float:
        """Of all its time; 0 where there is none yet."""
        return self.seconds[Bucket.PRODUCTIVE] / self.wall_s if self.wall_s else 0.0

    @property
    def steps_per_s(self) -> float:
        """New steps over the seconds that they took, however often the trial was resumed; 0 before the first."""
        productive_s = self.seconds[Bucket.PRODUCTIVE]
        return self.new_steps / productive_s if productive_s else 0.0
