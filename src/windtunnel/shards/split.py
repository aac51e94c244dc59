"""The strictly causal split of many series: all train before one moment, validate before another, and test behind it.

The moments are common to all instruments, so that none shows another's future. It is purged: a sample is of a stretch
only with all its rows, inputs and targets. It is embargoed: rows within a time behind a cut are in no stretch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import SettingsError

Stretches = tuple[tuple[int, int], ...]
"""Rows [first, end) of the row space, ascending."""


@dataclass(frozen=True)
class TimeSplit:
    """The stretches of each part, one a series at most, and where they are cut."""

    train: Stretches
    validation: Stretches
    test: Stretches
    validation_ns: int
    """Rows from here on are not trained on."""
    test_ns: int


def split_by_time(
    times_ns: Sequence[NDArray[np.int64]],
    *,
    train_fraction: float,
    validation_fraction: float,
    embargo_ns: int = 0,
) -> TimeSplit:
    """Cut series, whose rows stand one after the other, where these shares of all rows have happened.

    Raises SettingsError for shares that leave nothing to test on, or for an embargo below 0.
    """
    if not 0 < train_fraction < train_fraction + validation_fraction < 1:
        raise SettingsError(
            f"train_fraction {train_fraction} and validation_fraction {validation_fraction} leave nothing to train, "
            "validate or test on: both must be above 0 and their sum below 1"
        )
    if embargo_ns < 0:
        raise SettingsError(f"embargo_ns is {embargo_ns}, expected 0 or more nanoseconds")
    pooled = np.sort(np.concatenate(times_ns))
    cuts = [pooled[round(len(pooled) * share)] for share in (train_fraction, train_fraction + validation_fraction)]
    validation_ns, test_ns = (int(cut) for cut in cuts)
    return TimeSplit(
        train=_cut(times_ns, None, validation_ns),
        validation=_cut(times_ns, validation_ns + embargo_ns, test_ns),
        test=_cut(times_ns, test_ns + embargo_ns, None),
        validation_ns=validation_ns,
        test_ns=test_ns,
    )


def _cut(times_ns: Sequence[NDArray[np.int64]], first_ns: int | None, end_ns: int | None) -> Stretches:
    """Rows of each series that happened in [first_ns, end_ns)."""
    found, base = [], 0
    for times in times_ns:
        first = 0 if first_ns is None else int(np.searchsorted(times, first_ns, "left"))
        end = len(times) if end_ns is None else int(np.searchsorted(times, end_ns, "left"))
        if first < end:
            found.append((base + first, base + end))
        base += len(times)
    return tuple(found)
