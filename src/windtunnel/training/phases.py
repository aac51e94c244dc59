"""Times steps and their phases on the device without making it wait: events on an accelerator, the clock on a CPU.

Every moment belongs to one phase: a phase ends where the next begins. So the phases add up to the time of the loop,
and a device that waits for its host waits in the phase whose work the host was late with.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from windtunnel.records.meter import RankPhases, StepPhase


@dataclass(frozen=True)
class Taken:
    """What the clock took since it was asked before."""

    step_times_s: list[float]
    phases_s: list[float]
    """In the order of StepPhase."""


class PhaseClock:
    """Of one rank; marks are kept until `take` turns them into seconds."""

    def __init__(self, device: torch.device, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._device = device
        self._now = now
        self._marks: list[tuple[StepPhase, Any]] = []
        self._steps: list[tuple[int, int]] = []
        self._start = 0
        self._counted_from = 0
        self.begin()

    def begin(self) -> None:
        """The time that counts begins now; what steps took before is told by `take` all the same."""
        self._synchronize()
        self._counted_from = len(self._marks)
        self._seconds, self._counted = dict.fromkeys(StepPhase, 0.0), 0
        self._began_s = self._ended_s = self._now()
        self.enter(StepPhase.OTHER)

    def enter(self, phase: StepPhase) -> None:
        """What comes belongs to `phase`."""
        self._marks.append((phase, self._mark()))

    def start_step(self) -> None:
        """A step begins, by waiting for its batch."""
        self._start = len(self._marks)
        self.enter(StepPhase.DATA_WAIT)

    def stop_step(self) -> None:
        """The step has ended, or on an accelerator has been asked for."""
        self._steps.append((self._start, len(self._marks)))
        self.enter(StepPhase.OTHER)

    def take(self) -> Taken:
        """Waits for the device."""
        self._synchronize()
        marks, steps = self._marks, self._steps
        since = dict.fromkeys(StepPhase, 0.0)
        for index, ((phase, start), (_, end)) in enumerate(pairwise(marks)):
            taken_s = self._between(start, end)
            since[phase] += taken_s
            if index >= self._counted_from:
                self._seconds[phase] += taken_s
        self._counted += sum(start >= self._counted_from for start, _ in steps)
        self._marks, self._steps, self._counted_from = [marks[-1]], [], 0  # the phase that goes on
        times_s = [self._between(marks[start][1], marks[end][1]) for start, end in steps]
        return Taken(times_s, list(since.values()))

    def close(self) -> None:
        """The loop has ended, and with it the last phase."""
        self.enter(StepPhase.OTHER)
        self.take()
        self._ended_s = self._now()

    def read(self) -> RankPhases:
        """What was taken since `begin`, up to `close`."""
        seconds = {phase.value: taken_s for phase, taken_s in self._seconds.items()}
        return RankPhases(self._ended_s - self._began_s, self._counted, seconds)

    def _synchronize(self) -> None:
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)

    def _mark(self) -> Any:
        if self._device.type == "cpu":
            return self._now()
        event = torch.Event(self._device, enable_timing=True)
        event.record()
        return event

    def _between(self, start: Any, end: Any) -> float:
        return float(end - start) if self._device.type == "cpu" else float(start.elapsed_time(end) / 1e3)


def call_after_backward(loss: Tensor, call: Callable[[], None]) -> None:
    """Have `call` made when the backward pass of `loss` has computed all gradients.

    What a parallel wrapper queues during that pass, such as DDP's wait for its sums, comes after it: calls are made
    in the order in which they were queued, and the loss's own hook is the first to run.
    """
    loss.register_hook(lambda _: _queue_callback(call))  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _queue_callback(call: Callable[[], None]) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(call)
