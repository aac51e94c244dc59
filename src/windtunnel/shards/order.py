"""The order in which an epoch visits samples: a pure function of seed and epoch, so that any place can be resumed at.

It knows nothing of ranks and workers: a place in it, from 0 to n - 1, is all that a run has to remember.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windtunnel.shards.permutation import permute

Ids = NDArray[np.int64]
_BLOCK = 1 << 14
"""Places that are permuted at once: numpy's calls cost as much as a few hundred numbers."""


class Order(Protocol):
    """Samples 0 to n - 1 in some order, in spans of places that are loaded together."""

    @property
    def samples(self) -> int:
        """How many an epoch has."""
        ...

    def at(self, places: Ids, *, epoch: int) -> Ids:
        """The samples at these places of an epoch, ascending ones."""
        ...

    def span_end(self, place: int, *, epoch: int) -> int:
        """The place behind the span that `place` is in."""
        ...


@dataclass(frozen=True)
class GlobalOrder:
    """Any sample may stand anywhere; for data in memory."""

    samples: int
    seed: int
    span: int = 8192

    def at(self, places: Ids, *, epoch: int) -> Ids:
        """The samples at these places of an epoch."""
        first, last = (int(place) // _BLOCK for place in places[[0, -1]]) if len(places) else (0, -1)
        blocks = [_compute_block(self.samples, self.seed, epoch, block) for block in range(first, last + 1)]
        return np.concatenate(blocks)[places - first * _BLOCK] if blocks else places

    def span_end(self, place: int, *, epoch: int) -> int:
        """The place behind the span that `place` is in: spans are of one length."""
        return min((place // self.span + 1) * self.span, self.samples)


@dataclass(frozen=True, eq=False)
class BufferedOrder:
    """Chunks in random order, and the samples of each `buffer_chunks` of them in random order among themselves.

    `counts` are the samples of each chunk, which are numbered chunk by chunk.
    """

    counts: Ids
    buffer_chunks: int
    seed: int

    @property
    def samples(self) -> int:
        """How many an epoch has."""
        return int(self.counts.sum())

    def at(self, places: Ids, *, epoch: int) -> Ids:
        """The samples at these places of an epoch, ascending ones."""
        layout = _lay_out(self, epoch)
        out = np.empty_like(places)
        buffers = np.searchsorted(layout.buffer_starts, places, "right") - 1
        cuts = np.flatnonzero(np.diff(buffers, prepend=-1, append=-1))
        for begin, end in pairwise(cuts):
            buffer = int(buffers[begin])
            start, stop = layout.buffer_starts[buffer : buffer + 2]
            key = (self.seed, epoch, buffer + 1)
            shuffled = start + permute(places[begin:end] - start, int(stop - start), key=key)
            chunk = np.searchsorted(layout.chunk_starts, shuffled, "right") - 1
            out[begin:end] = layout.first_samples[chunk] + shuffled - layout.chunk_starts[chunk]
        return out

    def span_end(self, place: int, *, epoch: int) -> int:
        """The place behind the buffer that `place` is in."""
        starts = _lay_out(self, epoch).buffer_starts
        return int(starts[np.searchsorted(starts, place, "right")])


@lru_cache(maxsize=4)
def _compute_block(samples: int, seed: int, epoch: int, block: int) -> Ids:
    places = np.arange(block * _BLOCK, min((block + 1) * _BLOCK, samples))
    return permute(places, samples, key=(seed, epoch))


@dataclass(frozen=True)
class _Layout:
    """One epoch's chunks: the first place and first sample of each in turn, and the first place of each buffer."""

    chunk_starts: Ids
    first_samples: Ids
    buffer_starts: Ids
    """With the end of the last one behind."""


@lru_cache(maxsize=2)
def _lay_out(order: BufferedOrder, epoch: int) -> _Layout:
    counts = order.counts
    chunks = permute(np.arange(len(counts)), len(counts), key=(order.seed, epoch, 0))
    chunks = chunks[counts[chunks] > 0]
    ends = np.cumsum(counts[chunks])
    starts = ends - counts[chunks]
    firsts = (np.cumsum(counts) - counts)[chunks]
    return _Layout(starts, firsts, np.append(starts[:: order.buffer_chunks], ends[-1]))
