"""Straight pieces of time over size, fitted by relative error, and how many of them the data carry. Pure.

Plain least squares minimizes seconds, which the largest messages have nearly all of, and says nothing of the small.
Here every size counts alike, since each residual is divided by its own time.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MOST_PIECES = 4
LEAST_SIZES = 3
"""Sizes of a piece: its two numbers and one to contradict them."""
_NOISE = 0.01
"""Relative error below which no more pieces are taken: benchmarks do not repeat better."""
_PARAMETERS = 3
"""Of a piece: latency, slope, and where it begins."""

Floats = npt.NDArray[np.float64]
Best = dict[int, tuple[float, tuple[int, ...]]]
"""Up to each size, the least squares and where their pieces start."""


@dataclass(frozen=True)
class Piece:
    """latency_s + s_per_byte x size between two measured sizes. Beyond the first piece latency_s may be negative."""

    from_bytes: int
    to_bytes: int
    latency_s: float
    s_per_byte: float

    def predict_s(self, size_bytes: float) -> float:
        """Seconds of a message, within or beyond the piece."""
        return self.latency_s + self.s_per_byte * size_bytes


def fit_pieces(sizes: Sequence[int], times_s: Sequence[float]) -> tuple[Piece, ...]:
    """The pieces of ascending sizes with the least Bayesian information criterion; their ends are measured sizes."""
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(times_s, dtype=np.float64)
    count = len(x)
    fits = {(i, j): _fit_line(x[i:j], y[i:j], first=i == 0) for i, j in _spans(count)}
    best: Best = {0: (0.0, ())}
    chosen: tuple[float, tuple[int, ...]] = (math.inf, ())
    for pieces in range(1, MOST_PIECES + 1):
        best = _extend(best, fits)
        if count in best:
            squares, starts = best[count]
            chosen = min(chosen, (_score(squares, count, pieces), starts))
    edges = (*chosen[1], count)
    return tuple(Piece(int(x[i]), int(x[j - 1]), fits[i, j][0], fits[i, j][1]) for i, j in itertools.pairwise(edges))


def _spans(count: int) -> list[tuple[int, int]]:
    """Begin and end of every piece that may be; fewer sizes than a piece needs are one piece."""
    if count < LEAST_SIZES:
        return [(0, count)]
    return [(i, j) for i in range(count) for j in range(i + LEAST_SIZES, count + 1)]


def _extend(best: Best, fits: dict[tuple[int, int], tuple[float, float, float]]) -> Best:
    """The same with one piece more."""
    longer: Best = {}
    for (i, j), (_, _, squares) in fits.items():
        if i in best:
            so_far = (best[i][0] + squares, (*best[i][1], i))
            longer[j] = min(longer.get(j, (math.inf, ())), so_far)
    return longer


def _score(squares: float, count: int, pieces: int) -> float:
    variance = squares / count + _NOISE**2
    return count * math.log(variance) + _PARAMETERS * pieces * math.log(count)


def _fit_line(x: Floats, y: Floats, *, first: bool) -> tuple[float, float, float]:
    """Latency, slope >= 0 and the sum of squared relative residuals; the first piece's latency is none below 0."""
    weights = 1 / y**2
    total = weights.sum()
    middle = (weights * x).sum() / total
    spread = (weights * (x - middle) ** 2).sum()
    slope = (weights * (x - middle) * y).sum() / spread if spread > 0 else 0.0
    latency = (weights * y).sum() / total - slope * middle
    if slope < 0:
        latency, slope = (weights * y).sum() / total, 0.0
    elif first and latency < 0:
        latency, slope = 0.0, (weights * x * y).sum() / (weights * x**2).sum()
    residuals = (latency + slope * x) / y - 1
    return float(latency), float(slope), float((residuals**2).sum())
