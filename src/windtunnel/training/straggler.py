"""Finds a rank that is slower than the others by its own work: data and forward pass, before it waits for anyone."""

import statistics
from collections.abc import Sequence

RATIO = 1.3
_LEAST_S = 2e-3
"""Differences below that are noise of the operating system."""


def find_stragglers(own_s: Sequence[float]) -> dict[int, float]:
    """Ranks that take `RATIO` times the usual or more, with how many times; `own_s` are seconds by rank.

    The usual is the lower median: of two ranks the faster one's.
    """
    if len(own_s) < 2:
        return {}
    usual_s = statistics.median_low(own_s)
    return {
        rank: taken_s / usual_s
        for rank, taken_s in enumerate(own_s)
        if usual_s > 0 and taken_s >= RATIO * usual_s and taken_s - usual_s >= _LEAST_S
    }
