"""The time of a collective over its size, as a curve with its own error, and what the sizes leave unknown. Pure."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windtunnel.errors import InputFileError
from windtunnel.fabric.modes import Modes, find_modes
from windtunnel.fabric.pieces import LEAST_SIZES, Piece, fit_pieces
from windtunnel.units import format_bytes, format_seconds

LEAST_CURVE_SIZES = LEAST_SIZES
_WORST_LATENCY_ERROR = 0.5
"""Beyond this share of itself a latency counts as unknown."""


@dataclass(frozen=True)
class CostCurve:
    """Seconds of one operation over its size, fitted to `sizes` measured ones."""

    pieces: tuple[Piece, ...]
    sizes: int
    latency_s: float | None
    """Of an empty message; None where the sizes given cannot show it, or the times have two levels."""
    latency_at_most_s: float
    """The smallest time measured: a bound for a latency that is unknown."""
    median_error: float | None
    """Relative error of a size that the fit had not seen, each left out in turn but the least and the greatest, which
    would be extrapolated; None with fewer than four sizes."""
    worst_error: float | None
    modes: Modes | None = None
    """Where the times lie on two levels, which no curve can follow."""

    @property
    def least_bytes(self) -> int:
        """Smallest size measured."""
        return self.pieces[0].from_bytes

    @property
    def most_bytes(self) -> int:
        """Largest size measured."""
        return self.pieces[-1].to_bytes

    @property
    def s_per_byte(self) -> float:
        """Of large messages: the slope at the end."""
        return self.pieces[-1].s_per_byte

    def predict_s(self, size_bytes: float) -> float:
        """Seconds of a size; below the least and above the greatest measured one this extrapolates."""
        return _predict(self.pieces, size_bytes)

    def covers(self, size_bytes: float) -> bool:
        """Whether a size lies among the measured ones."""
        return self.least_bytes <= size_bytes <= self.most_bytes


def fit_curve(times_s: Mapping[int, Sequence[float]]) -> CostCurve:
    """The curve of the times measured at each size; of several at one size it follows the median.

    Raises InputFileError for fewer than three sizes, and for times that are not positive.
    """
    _require_fittable(times_s)
    sizes = sorted(times_s)
    medians = [statistics.median(times_s[size]) for size in sizes]
    pieces = fit_pieces(sizes, medians)
    errors = _leave_one_out(sizes, medians)
    modes = find_modes(times_s)
    return CostCurve(
        pieces,
        len(sizes),
        latency_s=None if modes else _find_latency(pieces[0], sizes, medians),
        latency_at_most_s=min(medians),
        median_error=statistics.median(errors) if errors else None,
        worst_error=max(errors, default=None),
        modes=modes,
    )


def _require_fittable(times_s: Mapping[int, Sequence[float]]) -> None:
    if len(times_s) < LEAST_CURVE_SIZES:
        raise InputFileError(f"a curve needs {LEAST_CURVE_SIZES} sizes and {len(times_s)} have times: measure more")
    for size, times in times_s.items():
        bad = [time for time in times if not (math.isfinite(time) and time > 0)]
        if bad or not times or size < 0:
            raise InputFileError(f"size {size} has the times {list(times)}: each must be above 0 s; leave it out")


def _predict(pieces: Sequence[Piece], size_bytes: float) -> float:
    """On a piece, or straight between the ends of two, since where a protocol changes is not known to the byte."""
    for before, after in itertools.pairwise(pieces):
        if size_bytes <= before.to_bytes:
            return before.predict_s(size_bytes)
        if size_bytes < after.from_bytes:
            share = (size_bytes - before.to_bytes) / (after.from_bytes - before.to_bytes)
            low, high = before.predict_s(before.to_bytes), after.predict_s(after.from_bytes)
            return low + share * (high - low)
    return pieces[-1].predict_s(size_bytes)


def _leave_one_out(sizes: Sequence[int], times_s: Sequence[float]) -> list[float]:
    errors = []
    for index in range(1, len(sizes) - 1):
        if len(sizes) - 1 < LEAST_CURVE_SIZES:
            continue
        pieces = fit_pieces([*sizes[:index], *sizes[index + 1 :]], [*times_s[:index], *times_s[index + 1 :]])
        errors.append(abs(_predict(pieces, sizes[index]) / times_s[index] - 1))
    return errors


def _find_latency(first: Piece, sizes: Sequence[int], times_s: Sequence[float]) -> float | None:
    """The first piece's latency, if the smallest message is mostly latency and the noise leaves it standing."""
    if first.latency_s <= first.s_per_byte * sizes[0]:
        return None
    used = [(size, time) for size, time in zip(sizes, times_s, strict=True) if size <= first.to_bytes]
    error = _latency_error_s(first, used)
    return first.latency_s if error <= _WORST_LATENCY_ERROR * first.latency_s else None


def _latency_error_s(piece: Piece, used: Sequence[tuple[int, float]]) -> float:
    """Twice the standard error of the latency in the weighted fit."""
    squares = sum((piece.predict_s(size) / time - 1) ** 2 for size, time in used)
    variance = squares / max(1, len(used) - 2)
    ones = sum(1 / time**2 for _, time in used)
    cross = sum(size / time**2 for size, time in used)
    big = sum(size**2 / time**2 for size, time in used)
    determinant = ones * big - cross**2
    return 2 * math.sqrt(variance * big / determinant) if determinant > 0 else math.inf


def describe_curve(curve: CostCurve) -> str:
    """Lines for people: the pieces, the error, and what is not known."""
    lines = [_describe_piece(piece, first=piece is curve.pieces[0]) for piece in curve.pieces]
    if curve.median_error is None or curve.worst_error is None:
        lines.append(f"error: unknown, {curve.sizes} sizes are too few to leave one out")
    else:
        lines.append(f"error at sizes left out: median {curve.median_error:.1%}, worst {curve.worst_error:.1%}")
    if curve.modes is not None:
        share, times = curve.modes.slower_share, curve.modes.slower_times
        lines.append(f"bimodal: {share:.0%} of the times are {times:.1f} times the others: no one curve holds")
    if curve.latency_s is None:
        known = f"it is at most {format_seconds(curve.latency_at_most_s)}"
        why = "the times have two levels" if curve.modes else f"no size is small enough (least {curve.least_bytes} B)"
        lines.append(f"latency: unknown, {why}; {known}")
    else:
        lines.append(f"latency: {format_seconds(curve.latency_s)}")
    return "\n".join(lines)


def _describe_piece(piece: Piece, *, first: bool) -> str:
    rate = f"{1 / piece.s_per_byte / 1e9:.4g} GB/s" if piece.s_per_byte > 0 else "no slope"
    sign = "-" if piece.latency_s < 0 else ""
    start = f"{sign}{format_seconds(abs(piece.latency_s))}" if piece.latency_s or not first else "no latency seen"
    return f"{format_bytes(piece.from_bytes)} .. {format_bytes(piece.to_bytes)}: {start} and {rate}"
