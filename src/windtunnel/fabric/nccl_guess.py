"""What a log of nccl-tests implies but does not say: which operation ran, and over how many ranks. Pure.

Nothing here is a guess: an answer is given only where the columns and the numbers leave no other. The factors between
algbw and busbw are those of nccl-tests' doc/PERFORMANCE.md, and the counts those of each program's GetCollByteCount.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from windtunnel.fabric.timings import Sample, TimingRow

_TYPE_BYTES = {
    "char": 1, "int8": 1, "uint8": 1, "f8e4m3": 1, "f8e5m2": 1,
    "half": 2, "bfloat16": 2,
    "int": 4, "int32": 4, "uint32": 4, "float": 4,
    "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip
_MOST_RANKS = 2**20
_SPLIT = frozenset({"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter", "hypercube"})
"""Their size is all ranks' and their count one rank's; busbw is algbw x (n - 1) / n."""
_HALF = 0.005
"""Bandwidths are printed with two digits behind the point."""


class HasColumns(Protocol):
    """Which optional columns a log has."""

    @property
    def redop(self) -> bool:
        """Whether there is one for the reduction."""

    @property
    def root(self) -> bool:
        """Whether there is one for the root."""


def find_operation(columns: HasColumns, rows: Sequence[TimingRow], ranks: int | None) -> str | None:
    """The operation, where columns and numbers leave one; None where several fit, or there are no rows."""
    if not rows:
        return None
    reduces = any(row.redop is not None for row in rows)
    rooted = any(row.root is not None and row.root >= 0 for row in rows)
    share = count_shares(rows)
    if reduces and rooted:
        return "reduce"
    if reduces:
        return _find_reduction(rows, share, ranks)
    if rooted:
        return "broadcast" if share == 1 and ranks != 1 else None  # gather and scatter look alike
    if columns.redop and not columns.root:
        return "alltoall"  # only its header had a column that stays blank
    if not columns.redop and not columns.root and share is not None and share > 1:
        return "all_gather" if _busbw_is_less(rows) else None
    return None


def find_ranks(operation: str | None, rows: Sequence[TimingRow]) -> int | None:
    """Ranks that the numbers imply: size over count where an operation splits it, else the ratio of bandwidths."""
    share = count_shares(rows)
    if share is not None and share > 1:
        return share
    return find_allreduce_ranks(rows) if operation == "all_reduce" else None


def count_shares(rows: Sequence[TimingRow]) -> int | None:
    """Size in elements over count, the same in all rows that have a count; None where it is not."""
    shares = set()
    for row in rows:
        width = _TYPE_BYTES.get(row.dtype or "")
        if width is None:
            return None
        if row.count:
            whole, rest = divmod(row.size_bytes, row.count * width)
            if rest:
                return None
            shares.add(whole)
    return shares.pop() if len(shares) == 1 else None


def find_allreduce_ranks(rows: Sequence[TimingRow]) -> int | None:
    """The one n for which busbw = algbw x 2 (n - 1) / n in every sample, within what printing rounds off."""
    least, most = 1.0, float(_MOST_RANKS)
    for sample in _samples(rows):
        low, high = _ratio_range(sample)
        least = max(least, 2 / (2 - low) if low < 2 else least)
        most = min(most, 2 / (2 - high) if high < 2 else most)
    first, last = math.ceil(least - 1e-9), math.floor(most + 1e-9)
    return first if first == last else None


def _find_reduction(rows: Sequence[TimingRow], share: int | None, ranks: int | None) -> str | None:
    if share is not None and share > 1:
        return "reduce_scatter"
    if share != 1 or ranks in (1, 2):
        return None  # with one or two ranks all_reduce, reduce_scatter and sendrecv print the same
    ratios = [_ratio_range(sample) for sample in _samples(rows)]
    if any(low > 1 for low, _ in ratios):
        return "all_reduce"
    return None


def _busbw_is_less(rows: Sequence[TimingRow]) -> bool:
    return any(_ratio_range(sample)[1] < 1 for sample in _samples(rows))


def _ratio_range(sample: Sample) -> tuple[float, float]:
    """Least and most of busbw / algbw, given how they are rounded."""
    algbw, busbw = sample.algbw or 0.0, sample.busbw or 0.0
    if algbw <= _HALF:
        return 0.0, math.inf
    # Wide numbers are printed with fewer digits: then the half of their last one.
    half_alg, half_bus = _half_digit(algbw), _half_digit(busbw)
    return (busbw - half_bus) / (algbw + half_alg), (busbw + half_bus) / max(algbw - half_alg, 1e-12)


def _half_digit(value: float) -> float:
    return _HALF if value < 1000 else 0.05 if value < 10000 else 0.5


def _samples(rows: Sequence[TimingRow]) -> list[Sample]:
    found = [sample for row in rows for sample in (row.out_of_place, row.in_place) if sample is not None]
    return [sample for sample in found if sample.algbw is not None and math.isfinite(sample.algbw)]
