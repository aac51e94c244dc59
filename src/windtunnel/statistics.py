"""Medians with what is known of their error: intervals, spreads, ratios, and the least difference that shows.

Pure: numbers in, numbers out. Every bootstrap is seeded, so the same values give the same interval.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 4000
_BLOCK_ELEMENTS = 1_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A median of `count` values and the bounds that hold it with the confidence asked for."""

    median: float
    low: float
    high: float
    count: int
    confidence: float = 0.95

    @property
    def reliable(self) -> bool:
        """Whether so few values can carry the confidence at all."""
        return self.count >= smallest_count(self.confidence)


def smallest_count(confidence: float = 0.95) -> int:
    """Fewest values whose whole range holds their distribution's median with this confidence.

    All n values lie on one side of the median with probability 2 ** (1 - n): the sign test's bound.
    """
    return math.ceil(1 + math.log2(1 / (1 - confidence)))


def median_interval(values: Sequence[float] | Floats, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Median and its percentile bootstrap interval.

    A single value is its own interval, with `reliable` false. Raises ValueError for no values or NaN.
    """
    sample = _as_sample(values, "values")
    low, high = _bootstrap_bounds(sample, confidence, seed)
    return Interval(float(np.median(sample)), low, high, len(sample), confidence)


def paired_ratio(
    a: Sequence[float] | Floats, b: Sequence[float] | Floats, *, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Median of a[i] / b[i] and its interval, for runs that were interleaved pair by pair.

    Pairing takes out whatever slowed both sides at once. Raises ValueError for unequal lengths or b <= 0.
    """
    top, bottom = _as_sample(a, "a"), _as_sample(b, "b")
    if len(top) != len(bottom):
        raise ValueError(f"paired_ratio needs as many a ({len(top)}) as b ({len(bottom)}): drop the unpaired runs")
    _require_positive(bottom)
    return median_interval(top / bottom, confidence=confidence, seed=seed)


def interquartile_range(values: Sequence[float] | Floats) -> float:
    """Spread of the middle half; 0 for a single value."""
    low, high = np.percentile(_as_sample(values, "values"), (25, 75))
    return float(high - low)


def proportion_margin(share: float, count: int, *, confidence: float = 0.95) -> float:
    """Half width of the interval between two shares measured on `count` samples each (normal approximation)."""
    if count <= 0:
        return math.inf
    return normal_quantile(confidence) * math.sqrt(2 * share * (1 - share) / count)


def normal_quantile(confidence: float) -> float:
    """Standard deviations that hold `confidence` of a normal distribution about its mean; by bisection."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < confidence else (low, middle)
    return (low + high) / 2


def student_quantile(confidence: float, freedom: int) -> float:
    """Half width, in standard errors, that holds `confidence` of Student's t with `freedom` degrees of freedom.

    With t = sqrt(freedom) tan(angle) its density is cos(angle) ** (freedom - 1), summed here by the trapezoid rule.
    """
    angle = np.linspace(0, np.pi / 2, 20001)
    density = np.cos(angle).clip(0) ** (freedom - 1)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(freedom) * np.tan(np.interp(confidence * mass[-1], mass, angle)))


def pooled_deviation(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Standard deviation within groups of repeats, pooled, and its degrees of freedom; (0, 0) without repeats."""
    samples = [_as_sample(group, "group") for group in groups if len(group) > 1]
    freedom = sum(len(sample) - 1 for sample in samples)
    if not freedom:
        return 0.0, 0
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    return math.sqrt(squares / freedom), freedom


def detectable_difference(
    deviation: float, freedom: int, counts: tuple[int, int], *, confidence: float = 0.95
) -> float:
    """Smallest difference between two medians, of `counts` repeats, that the deviation of repeats would not make."""
    if freedom < 1:
        return math.inf
    variances = [(math.pi / 2 if count > 2 else 1.0) / count for count in counts]  # a median's error over a mean's
    return student_quantile(confidence, freedom) * deviation * math.sqrt(sum(variances))


def paired_difference(a: Sequence[float] | Floats, b: Sequence[float] | Floats, *, confidence: float = 0.95) -> float:
    """Half width of the interval of the mean of `a[i] - b[i]`, by Student's t over two or more pairs.

    A mean difference within it cannot be told from none.
    """
    differences = _as_sample(a, "a") - _as_sample(b, "b")
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return student_quantile(confidence, len(differences) - 1) * float(error)


def _as_sample(values: Sequence[float] | Floats, name: str) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"{name} has shape {sample.shape}, expected at least one number in a row")
    if not np.isfinite(sample).all():
        raise ValueError(f"{name} holds NaN or infinity: drop failed runs before taking medians")
    return sample


def _require_positive(bottom: Floats) -> None:
    if (bottom <= 0).any():
        raise ValueError(f"b holds {bottom.min():g}, expected positive numbers: a ratio to it means nothing")


def _bootstrap_bounds(sample: Floats, confidence: float, seed: int) -> tuple[float, float]:
    if len(sample) == 1:
        return float(sample[0]), float(sample[0])
    return _percentiles(_resampled_medians(sample, np.random.default_rng(seed)), confidence)


def _resampled_medians(sample: Floats, random: np.random.Generator) -> Floats:
    # In blocks: a long sample times all resamples would not fit in memory.
    rows = max(1, min(RESAMPLES, _BLOCK_ELEMENTS // len(sample)))
    counts = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    medians = [np.median(random.choice(sample, (count, len(sample))), axis=1) for count in counts]
    return np.concatenate(medians)


def _percentiles(medians: Floats, confidence: float) -> tuple[float, float]:
    tail = 50 * (1 - confidence)
    low, high = np.percentile(medians, (tail, 100 - tail))
    return float(low), float(high)
