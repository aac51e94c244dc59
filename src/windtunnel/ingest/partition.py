"""Which pieces of a text are read together. Pure; where pieces begin does not depend on ranks, what is a run does."""

from collections.abc import Iterable, Iterator
from itertools import groupby

_UNPACKED_TIMES = 8
"""Text to packed bytes, to reckon how long a file takes of which only this is known."""


def list_runs(wanted: Iterable[int], *, ranks: int, is_seekable: bool) -> Iterator[tuple[int, int]]:
    """First piece and end of each run of `wanted` pieces, in order.

    Each piece is its own run where reading may begin in the middle. Elsewhere all that lies before a run is unpacked
    in vain, so there are no more runs than ranks.
    """
    for first, end in _join_neighbours(wanted):
        size = 1 if is_seekable else -(-(end - first) // ranks)
        yield from ((begin, min(begin + size, end)) for begin in range(first, end, size))


def estimate_bytes(raw_bytes: int, text_bytes: int | None, *, share: float) -> int:
    """Text of a run that is this share of its part, for the order of runs and for what is left to do."""
    return max(1, int((raw_bytes * _UNPACKED_TIMES if text_bytes is None else text_bytes) * share))


def estimate_left_s(elapsed_s: float, *, done: int, total: int) -> float | None:
    """Seconds until all of `total` is done at the pace so far; None before anything is."""
    return elapsed_s * (total - done) / done if done > 0 else None


def _join_neighbours(wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
    for _, group in groupby(enumerate(sorted(wanted)), key=lambda pair: pair[1] - pair[0]):
        pieces = [piece for _, piece in group]
        yield pieces[0], pieces[-1] + 1
