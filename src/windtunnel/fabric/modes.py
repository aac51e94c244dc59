"""Whether times lie on two levels, as where a network settles into one of two paths or protocols by chance. Pure.

A message does not get faster by being larger. So the least time of a size and all larger ones is a floor that one
mode follows, and how far each time is above its floor shows the other mode, whatever the curve's shape is.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LEAST_GAP = 1.3
"""Factor between the two levels below which they count as noise."""
_LEAST_SHARE = 0.15
"""Of the times on the rarer level; fewer are outliers."""
_LEAST_TIMES = 3
_LEAST_SEPARATION = 4.5
"""Ashman's D; a single level that is cut in two has 2.7 where it is normal and 3.5 where it is uniform."""


@dataclass(frozen=True)
class Modes:
    """Two levels: how many times slower the second is, and the share of all times on it."""

    slower_times: float
    slower_share: float


def find_modes(times_s: Mapping[int, Sequence[float]]) -> Modes | None:
    """The two levels of the times at each size; None where there is one."""
    excess = sorted(math.log(time / floor) for time, floor in _above_floor(times_s))
    least = max(_LEAST_TIMES, math.ceil(_LEAST_SHARE * len(excess)))
    cuts = range(least, len(excess) - least + 1)
    if not cuts:
        return None
    cut = max(cuts, key=lambda index: _between(excess, index))
    fast, slow = excess[:cut], excess[cut:]
    gap = statistics.median(slow) - statistics.median(fast)
    spread = math.hypot(statistics.pstdev(fast), _spread_of_bulk(slow))
    if gap < math.log(_LEAST_GAP) or slow[0] - fast[-1] < math.log(_LEAST_GAP) / 2:
        return None
    if spread > 0 and math.sqrt(2) * gap / spread < _LEAST_SEPARATION:
        return None
    return Modes(math.exp(gap), len(slow) / len(excess))


def _above_floor(times_s: Mapping[int, Sequence[float]]) -> list[tuple[float, float]]:
    floor = math.inf
    found = []
    for size in sorted(times_s, reverse=True):
        floor = min(floor, *times_s[size])
        found += [(time, floor) for time in times_s[size]]
    return found


def _between(values: Sequence[float], cut: int) -> float:
    """Variance between the two sides (Otsu's criterion)."""
    left, right = values[:cut], values[cut:]
    return len(left) * len(right) * (statistics.fmean(left) - statistics.fmean(right)) ** 2


def _spread_of_bulk(values: Sequence[float]) -> float:
    """Deviation without the largest tenth, since a first message may take seconds."""
    return statistics.pstdev(values[: max(2, math.ceil(0.9 * len(values)))])
