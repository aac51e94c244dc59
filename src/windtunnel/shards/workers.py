"""The loader behind torch's own DataLoader, for code that has one: each worker process makes whole batches.

The loader's threads need no workers. Nothing that is imported here, or in a worker, imports polars, whose threads do
not survive a fork.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils.data import DataLoader, Dataset

from windtunnel.shards.loader import Batch, Loader, Position


class BatchDataset(Dataset[Batch]):
    """Batches by their position."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getitem__(self, position: Position) -> Batch:
        """This rank's part of the global batch at `position`."""
        return self._loader.at(position)


@dataclass(frozen=True)
class Steps:
    """The positions of every batch from one on to the end of its epoch."""

    first: Position
    samples: int
    batch_size: int

    def __iter__(self) -> Iterator[Position]:
        for place in range(self.first.place, self.samples, self.batch_size):
            yield Position(self.first.seed, self.first.epoch, place)


def make_worker_loader(
    loader: Loader, position: Position, *, workers: int, start: Literal["fork", "spawn"] = "spawn"
) -> "DataLoader[Batch]":
    """The batches of an epoch from `position` on, in the same order as the loader's own, made by worker processes."""
    steps: Any = Steps(position, loader.samples, loader.batch_size)
    return DataLoader(
        BatchDataset(loader),
        sampler=steps,
        batch_size=None,
        num_workers=workers,
        worker_init_fn=start_worker,
        multiprocessing_context=start if workers else None,
    )


def start_worker(worker: int) -> None:
    """Leave SIGTERM to the rank: it ends its workers itself, once its last step is done."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
