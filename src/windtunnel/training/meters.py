"""What is measured while training: losses over all ranks, step times, and the lines of metrics.jsonl."""

import json
import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from windtunnel.artifacts import write_atomic
from windtunnel.records.meter import RankPhases, StepPhase
from windtunnel.records.trial import StepRecord
from windtunnel.training.mesh import Mesh
from windtunnel.training.phases import PhaseClock
from windtunnel.training.recovery import Fault, find_fault

_KEPT_LOSSES = 50
_KEPT_TIMES = 2000
"""Step times that a checkpoint carries on to the next attempt."""


@dataclass
class MeterState:
    """What a resumed run needs to write the very lines that the first one would have written."""

    pending_losses: list[float]
    """Global losses of the steps since the last line."""
    last_loss: float
    """Of the last line."""
    step_times_s: list[float]
    """Newest step times of all attempts, warm-up left out."""
    warmup_times_s: list[float]
    """Those of warm-up."""
    recent_losses: list[float]
    """Newest global losses, of which a spike leaps out."""


class Meters:
    """Collects a rank's losses and step times; `flush` makes them global with one collective."""

    def __init__(self, mesh: Mesh, *, discard_steps: int) -> None:
        self.state = MeterState([], math.nan, [], [], [])
        self._mesh = mesh
        self._clock = PhaseClock(mesh.device)
        self._discard_steps = self._warmup_left = self._until_counted = discard_steps
        self._line_phases_s = torch.zeros(len(StepPhase), dtype=torch.float64)
        self._losses: list[Tensor] = []
        self._steps: list[int] = []
        self._line_times_s: list[float] = []
        self._own_s: list[float] = []
        self.ranks_own_s: list[float] = []
        """Median time of each rank's own work in the steps of the last flush, before it waits for others."""
        self.agreed_step_s = 0.0
        """Mean step time of all ranks up to the last flush; the same on each."""

    @property
    def line_ready(self) -> bool:
        """Whether any step was taken since the last line."""
        return bool(self.state.pending_losses)

    @property
    def known_loss(self) -> float | None:
        """Loss of the newest line; none before the first."""
        return None if math.isnan(self.state.last_loss) else self.state.last_loss

    @property
    def phases(self) -> RankPhases:
        """Where this rank's time went, once the loop has ended."""
        return self._clock.read()

    def begin(self) -> None:
        """The loop begins; its phases count from here, and again from its first step after warm-up."""
        self._until_counted = self._discard_steps
        self._clock.begin()

    def close(self) -> None:
        """The loop has ended."""
        self._clock.close()

    def enter(self, phase: StepPhase) -> None:
        """What comes belongs to `phase`."""
        self._clock.enter(phase)

    def start_step(self) -> None:
        """A step begins, by waiting for its batch."""
        if self._until_counted == 0:
            self._clock.begin()
        self._until_counted -= 1
        self._clock.start_step()

    def add_own(self, seconds: float) -> None:
        """What this rank took in a step for itself."""
        self._own_s.append(seconds)

    def stop_step(self, loss: Tensor, *, step: int) -> None:
        """Step number `step` has ended; `loss` is this rank's part of the global mean, still on its device."""
        self._clock.stop_step()
        self._losses.append(loss.detach())
        self._steps.append(step)

    def flush(self, *, spike: float = 0.0) -> Fault | None:
        """Bring in the steps since the last call, on all ranks, or else return the first of them that is a fault.

        `spike` is the multiple of the usual loss that counts as one; 0 for none.
        """
        if not self._losses:
            return None
        taken, world_size = self._clock.take(), self._mesh.world_size
        means = [statistics.fmean(taken.step_times_s) / world_size, *(s / world_size for s in taken.phases_s)]
        own_s = torch.zeros(world_size, dtype=torch.float64)
        own_s[self._mesh.rank] = statistics.median(self._own_s) if self._own_s else 0.0
        shares = torch.cat([torch.tensor(means, dtype=torch.float64), own_s]).to(self._losses[0].device)
        # Ranks that share their samples have the whole of a loss each.
        parts = torch.cat([torch.stack(self._losses).double() / self._mesh.tensor, shares])
        steps, self._steps, self._losses = self._steps, [], []
        if self._mesh.world_size > 1:
            dist.all_reduce(parts)
        of_steps, mean, phases_s, of_ranks = torch.split(parts.cpu(), [len(steps), 1, len(StepPhase), world_size])
        losses, self.agreed_step_s, self.ranks_own_s = of_steps.tolist(), float(mean), of_ranks.tolist()
        self._line_phases_s += phases_s
        self._own_s = []
        known = self.state.recent_losses
        fault = find_fault(dict(zip(steps, losses, strict=True)), known=known, spike=spike)
        if fault is not None:
            return fault
        self.state.pending_losses += losses
        self.state.recent_losses = [*known, *losses][-_KEPT_LOSSES:]
        self._add_times(taken.step_times_s)
        return None

    def forget_pending(self) -> None:
        """After a return to an earlier step: what was not brought in by then never happened."""
        self._losses, self._steps, self._line_times_s, self._own_s = [], [], [], []
        self._clock.take()

    def take_line(self) -> tuple[float, float]:
        """Mean loss and median step time in seconds since the last line."""
        self.state.last_loss = statistics.fmean(self.state.pending_losses)
        self.state.pending_losses = []
        times_s, self._line_times_s = self._line_times_s, []
        return self.state.last_loss, statistics.median(times_s) if times_s else math.nan

    def take_phases(self, steps: int) -> dict[str, float]:
        """Seconds of each phase since the last line, for each of so many steps; means over ranks."""
        taken_s, self._line_phases_s = self._line_phases_s, torch.zeros_like(self._line_phases_s)
        return dict(zip(StepPhase, (taken_s / max(1, steps)).tolist(), strict=True))

    def _add_times(self, times_s: Sequence[float]) -> None:
        self._line_times_s += times_s
        warmup = min(self._warmup_left, len(times_s))
        self._warmup_left -= warmup
        self.state.warmup_times_s = [*self.state.warmup_times_s, *times_s[:warmup]][-_KEPT_TIMES:]
        self.state.step_times_s = [*self.state.step_times_s, *times_s[warmup:]][-_KEPT_TIMES:]


@dataclass(frozen=True)
class StepTimes:
    """Step times of a whole trial, warm-up discarded; in a trial of nothing but warm-up, that of all its steps."""

    median_s: float
    p90_s: float
    timed: int
    discarded: int


def summarise_times(state: MeterState) -> StepTimes:
    """Median and 90th percentile (the nearest rank at or above) of the steps that count."""
    times_s = sorted(state.step_times_s or state.warmup_times_s)
    discarded = len(state.warmup_times_s) if state.step_times_s else 0
    p90_s = times_s[math.ceil(0.9 * len(times_s)) - 1]
    return StepTimes(statistics.median(times_s), p90_s, len(times_s), discarded)


class MetricsLog:
    """`metrics.jsonl`: one StepRecord a line; on ranks that do not write, a log that nobody keeps."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self._file = path.open("a", buffering=1) if write else None

    def append(self, record: StepRecord) -> None:
        """Add a line, and show it."""
        if self._file is not None:
            self._file.write(json.dumps(asdict(record), separators=(",", ":")) + "\n")

    def sync(self) -> None:
        """Make the lines durable, before a checkpoint that is later than they."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            self._file.close()


def drop_later_lines(path: Path, step: int) -> None:
    """Keep the whole lines up to `step`, so that a resumed run adds to them what it computes again."""
    if not path.exists():
        return
    lines = path.read_text(errors="replace").splitlines()
    kept = [line for line in lines if (found := read_step(line)) is not None and found <= step]
    write_atomic(path, "".join(f"{line}\n" for line in kept).encode())


def read_step(line: str) -> int | None:
    """The step of a line of metrics.jsonl; None for a line that was cut off."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return None
