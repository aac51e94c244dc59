"""What follows a loss that is not finite, or that leaps: back to the last clean checkpoint, then replay or skip.

A replayed run takes the same steps to the last bit. So what does not come again was transient (a machine's fault);
what comes again on the same batch is that batch's, which is skipped; what comes even then is the run's own.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

_SPIKE_AFTER = 20
"""Losses that must be known before one can leap out of them."""


@dataclass(frozen=True)
class Fault:
    """A step after which nothing may be kept; the same on all ranks."""

    step: int
    """Counted from 1."""
    told: str


class Remedy(StrEnum):
    """What to do about a fault."""

    REPLAY = "replay"
    SKIP = "skip"
    STOP = "stop"


@dataclass
class Recovery:
    """Faults since the last clean checkpoint after them, and what was learnt of earlier ones."""

    rollbacks: int
    """Times to go back before giving up; 0 for never."""
    open: list[Fault] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)
    """Steps whose batch is passed over, counted from 1; they are part of the run's state."""
    notes: list[str] = field(default_factory=list)

    def decide(self, fault: Fault) -> Remedy:
        """What to do now; the second time at one step its batch is skipped from then on."""
        again = any(known.step == fault.step for known in self.open)
        self.open.append(fault)
        if len(self.open) > self.rollbacks:
            return Remedy.STOP
        if not again:
            return Remedy.REPLAY
        self.skipped.add(fault.step)
        return Remedy.SKIP

    def settle(self, step: int) -> list[str]:
        """A clean checkpoint after `step` was reached: what the open faults before it were."""
        if not self.open or step < max(fault.step for fault in self.open):
            return []
        told = []
        for fault in {fault.step: fault for fault in self.open}.values():
            cause = "the batch's: skipped" if fault.step in self.skipped else "transient: it did not come again"
            told.append(f"{fault.told}; {cause}")
        self.open.clear()
        self.notes += told
        return told

    def explain_stop(self) -> str:
        """Why there is no further way back."""
        steps = ", ".join(str(fault.step) for fault in self.open)
        if not self.rollbacks:
            return self.open[-1].told
        told = f"it persists after {self.rollbacks} returns to a clean checkpoint (steps {steps})"
        return f"{self.open[-1].told}; {told}"


def find_fault(losses: Mapping[int, float], *, known: Sequence[float], spike: float) -> Fault | None:
    """The first step whose loss is not finite, or more than `spike` times the median of those known (0: never)."""
    before = list(known)
    for step, loss in losses.items():
        if not math.isfinite(loss):
            return Fault(
                step,
                f"the loss became {loss} at step {step}: lower training.learning_rate, lengthen "
                "training.warmup_steps, or try training.precision=fp32",
            )
        usual = statistics.median(before) if spike and len(before) >= _SPIKE_AFTER else math.inf
        if spike and loss > spike * usual:
            return Fault(step, f"the loss leapt to {loss:.4g} at step {step}, {loss / usual:.3g} times its median")
        before.append(loss)
    return None
