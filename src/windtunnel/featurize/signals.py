"""A table of signals over time, and the causal arithmetic that makes one: nothing here looks at a later row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Signal:
    """One series (T,) in fixed units. A level wanders without bound, so its distance from its mean is a feature,
    not its value; other signals are features themselves too. NaN before it is known.
    """

    name: str
    unit: str
    values: Floats
    is_level: bool = False


@dataclass(frozen=True)
class Table:
    """Signals on common rows; those of the forecast instrument come first and are `owned` in number."""

    time_ns: NDArray[np.int64]
    price: Floats
    signals: tuple[Signal, ...]
    owned: int


def carry_forward(values: Floats) -> Floats:
    """Each NaN or infinity replaced by the last finite value before it; NaN where there is none."""
    known = np.isfinite(values)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)


def take_as_of(values: Floats, times: NDArray[np.int64], *, at: NDArray[np.int64]) -> Floats:
    """For each moment of `at`, the last finite value whose time is not later; NaN where there is none."""
    if not len(values):
        return np.full(len(at), np.nan)
    position = np.searchsorted(times, at, side="right") - 1
    return np.where(position >= 0, carry_forward(values)[np.maximum(position, 0)], np.nan)


def log_positive(values: Floats, *, scale: float) -> Floats:
    """`scale` x natural logarithm; NaN where a value is not above zero."""
    return scale * np.log(np.where(values > 0, values, np.nan))


def differences(values: Floats) -> Floats:
    """Each value less the one before it; the first is NaN."""
    return np.diff(values, prepend=np.nan)
