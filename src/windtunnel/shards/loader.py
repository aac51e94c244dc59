"""Batches of windows in an epoch's order, from any place of it on, filled ahead by a thread while others are used.

A span of places is filled at once, into one of two buffers that are reused; batches are views of it. The place in an
epoch is all that is to be remembered: which rank takes which part of a global batch follows from it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from windtunnel.errors import LayoutError, SettingsError
from windtunnel.shards.order import Order
from windtunnel.shards.sources import Source
from windtunnel.shards.windows import Field, Windows

Tensors = dict[Field, Tensor]
_LINE_BYTES = 64


@dataclass(frozen=True)
class Position:
    """Where a run is in its samples: all that resuming takes, whatever the number of ranks."""

    seed: int
    epoch: int = 0
    place: int = 0
    """Global index of the next sample in the epoch's order."""


@dataclass(frozen=True)
class Batch:
    """This rank's part of a global batch; its tensors are valid until the next batch is asked for."""

    tensors: Tensors
    """By field, (samples, rows, …)."""
    samples: NDArray[np.int64]
    after: Position
    """Where to resume once this batch is done."""


@dataclass(frozen=True)
class RankShare:
    """Who takes what of an epoch: `batch_size` samples a global batch, over `world_size` ranks."""

    batch_size: int
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size <= self.batch_size:
            raise LayoutError(
                f"batch_size {self.batch_size} over {self.world_size} ranks, rank {self.rank}: expected a sample "
                "a rank at least, and ranks from 0: raise batch_size or lower the number of ranks"
            )

    def places(self, first: int, end: int, *, origin: int, samples: int) -> NDArray[np.int64]:
        """This rank's places from `first` to `end` - 1, with batches counted from `origin` to the end at `samples`.

        The last batch may be short. Parts of a batch are contiguous, and differ by one sample at most.
        """
        places = np.arange(first, end)
        if self.world_size == 1:
            return places
        within = (places - origin) % self.batch_size
        size = np.minimum(self.batch_size, samples - (places - within))
        part = size * self.rank // self.world_size, size * (self.rank + 1) // self.world_size
        mine: NDArray[np.int64] = places[(within >= part[0]) & (within < part[1])]
        return mine


class Loader:
    """Batches of the samples of `windows`, each with all of `fields`.

    Mutable: its buffers. One iteration at a time; make one a process.
    """

    def __init__(
        self,
        source: Source,
        windows: Windows,
        fields: Sequence[Field],
        *,
        order: Order,
        seed: int,
        share: RankShare,
        threads: int = 1,
    ) -> None:
        assert order.samples == windows.samples, f"{order.samples} samples in the order, {windows.samples} windows"
        self._source = source
        self._windows = windows
        self._fields = tuple(fields)
        self._order = order
        self._seed = seed
        self._share = share
        self._threads = threads
        self._buffers: list[Tensors] = [{}, {}]

    @property
    def samples(self) -> int:
        """Samples of an epoch, over all ranks."""
        return self._order.samples

    @property
    def batch_size(self) -> int:
        """Samples of a global batch."""
        return self._share.batch_size

    def batches(self, position: Position) -> Iterator[Batch]:
        """Batches from `position` to the end of its epoch; the last one may be short, and empty on some ranks."""
        self._check(position)
        spans = self._spans(position)
        with ThreadPoolExecutor(1, thread_name_prefix="loader") as pool:

            def fill(turn: int) -> "Future[_Filled | None]":
                return pool.submit(self._fill, next(spans, None), position, turn)

            yield from self._deliver(position, fill)

    def at(self, position: Position) -> Batch:
        """The batch at `position` alone, in memory of its own that is not pinned: what a worker process makes."""
        self._check(position)
        end = min(position.place + self._share.batch_size, self.samples)
        places = self._share.places(position.place, end, origin=position.place, samples=self.samples)
        tensors = {field: self._allocate(field, len(places), pin=False) for field in self._fields}
        return Batch(tensors, self._read(places, position.epoch, tensors), self._after(position, end))

    def _deliver(self, position: Position, fill: Callable[[int], "Future[_Filled | None]"]) -> Iterator[Batch]:
        turn, ahead, before = 0, fill(0), None
        size = self._share.batch_size
        while (filled := ahead.result()) is not None:
            turn = 1 - turn
            if before is not None:
                filled.take_over(before)
            before = filled
            self._settle()
            ahead = fill(turn)
            for first in range(filled.first, filled.end, size):
                end = min(first + size, self.samples)
                if end <= filled.end:
                    yield filled.cut(first, end, after=self._after(position, end))

    def _after(self, position: Position, end: int) -> Position:
        if end < self.samples:
            return Position(self._seed, position.epoch, end)
        return Position(self._seed, position.epoch + 1)

    def _spans(self, position: Position) -> Iterator[tuple[int, int, int]]:
        """Where the batch begins that a span begins in, and the span."""
        size, first = self._share.batch_size, position.place
        while first < self.samples:
            end = self._order.span_end(first, epoch=position.epoch)
            yield first - (first - position.place) % size, first, end
            first = end

    def _fill(self, span: tuple[int, int, int] | None, position: Position, turn: int) -> "_Filled | None":
        if span is None:
            return None
        batch, first, end = span
        places = self._share.places(batch, end, origin=position.place, samples=self.samples)
        begun = int(np.searchsorted(places, first))
        tensors = self._reserve(turn, len(places))
        unfilled = {field: tensor[begun:] for field, tensor in tensors.items()}
        samples = self._read(places[begun:], position.epoch, unfilled)
        return _Filled(batch, end, begun, places, samples, tensors)

    def _read(self, places: NDArray[np.int64], epoch: int, tensors: Tensors) -> NDArray[np.int64]:
        samples = self._order.at(places, epoch=epoch)
        outs = {field: tensor.data_ptr() for field, tensor in tensors.items()}
        self._source.fill(self._windows.rows_of(samples), outs, threads=self._threads)
        return samples

    def _reserve(self, turn: int, samples: int) -> Tensors:
        buffers = self._buffers[turn]
        for field in self._fields:
            if field not in buffers or len(buffers[field]) < samples:
                buffers[field] = self._allocate(field, samples, pin=_has_device())
        return {field: buffers[field][:samples] for field in self._fields}

    def _allocate(self, field: Field, samples: int, *, pin: bool) -> Tensor:
        form = self._source.form(field.column)
        shape = (samples, field.rows, *form.shape)
        if pin:
            empty = torch.from_numpy(np.empty(0, form.dtype))
            return torch.empty(shape, dtype=empty.dtype, pin_memory=True)
        # numpy asks for huge pages, which random writes want; torch does not. Stores go by whole cache lines.
        room = np.empty(math.prod(shape) * form.dtype.itemsize + _LINE_BYTES, np.uint8)
        first = -room.ctypes.data % _LINE_BYTES
        return torch.from_numpy(room[first : first + len(room) - _LINE_BYTES].view(form.dtype).reshape(shape))

    def _settle(self) -> None:
        # Copies to the device that still read the buffer that is to be filled.
        if _has_device():
            torch.accelerator.synchronize()

    def _check(self, position: Position) -> None:
        if position.seed != self._seed:
            raise SettingsError(
                f"the position is of seed {position.seed}, this loader of {self._seed}: it would go on in another "
                "order"
            )
        if position.epoch < 0 or not 0 <= position.place < self.samples:
            raise SettingsError(
                f"place {position.place} of epoch {position.epoch} is in no epoch of {self.samples} samples: it is a "
                "position in other data"
            )


@dataclass
class _Filled:
    """This rank's samples from `first`, where a batch begins, to `end` - 1; `begun` are of the buffer before."""

    first: int
    end: int
    begun: int
    places: NDArray[np.int64]
    samples: NDArray[np.int64]
    tensors: Tensors

    def take_over(self, before: "_Filled") -> None:
        """Copy the samples of a batch that the buffer before had begun."""
        if self.begun:
            for field, tensor in self.tensors.items():  # by numpy: torch would wake a thread for each CPU
                tensor.numpy()[: self.begun] = before.tensors[field].numpy()[-self.begun :]
            self.samples = np.concatenate([before.samples[-self.begun :], self.samples])

    def cut(self, first: int, end: int, *, after: Position) -> Batch:
        """The batch of the places from `first` to `end` - 1."""
        part = slice(*np.searchsorted(self.places, (first, end)))
        return Batch({field: tensor[part] for field, tensor in self.tensors.items()}, self.samples[part], after)


def _has_device() -> bool:
    return torch.accelerator.is_available()
