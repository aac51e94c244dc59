"""Times single calls: warm-up discarded, the collector quiet, percentiles by nearest rank."""

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

X = TypeVar("X")


@dataclass(frozen=True)
class Percentiles:
    """Microseconds that half, 99 % and 99.9 % of the timed calls do not exceed."""

    p50_us: float
    p99_us: float
    p999_us: float


def time_calls(call: Callable[[X], object], inputs: Sequence[X], *, samples: int, discard: int) -> list[int]:
    """Nanoseconds of each of `samples` calls after `discard` that are not counted; inputs are taken in turn."""
    gc.collect()
    was_enabled = gc.isenabled()
    # A collection belongs to the process around the model, and would fall on calls at random.
    gc.disable()
    try:
        for number in range(discard):
            call(inputs[number % len(inputs)])
        times_ns = []
        for number in range(samples):
            x = inputs[number % len(inputs)]
            started = time.perf_counter_ns()
            call(x)
            times_ns.append(time.perf_counter_ns() - started)
    finally:
        if was_enabled:
            gc.enable()
    return times_ns


def find_percentiles(times_ns: Sequence[int]) -> Percentiles:
    """Percentiles by nearest rank: the least time that the given share of calls did not exceed."""
    ordered = sorted(times_ns)
    return Percentiles(*(ordered[math.ceil(share * len(ordered)) - 1] / 1e3 for share in (0.5, 0.99, 0.999)))
