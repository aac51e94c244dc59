"""The shard that the loader's benchmark reads: windows of 128 x 40 float32, as features are, and plain readers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  # registers the filters that shards are compressed with
import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, RandomSampler

from windtunnel.records.data import ShardManifest
from windtunnel.shards.manifest import write_manifest
from windtunnel.shards.windows import Field
from windtunnel.shards.writer import ShardWriter

WINDOW_ROWS = 128
COLUMNS = 40
WINDOWS_A_CHUNK = 32
WINDOW_BYTES = WINDOW_ROWS * COLUMNS * 4
FIELD = Field("features", 1 - WINDOW_ROWS, 1)
BATCH = 256
FILTER = "zstd"
"""What featurize writes."""
_NAIVE_BATCHES = 12


@dataclass(frozen=True)
class Made:
    """A dataset of one shard."""

    manifest: Path
    windows: int
    packed_bytes: int

    @property
    def bytes(self) -> int:
        """Of all windows, unpacked."""
        return self.windows * WINDOW_BYTES


def make_dataset(folder: Path, windows: int) -> Made:
    """Random walks in hundredths, two thirds of whose steps are small, chunk by chunk."""
    rng = np.random.default_rng(0)
    chunk_rows = WINDOW_ROWS * WINDOWS_A_CHUNK
    writer = ShardWriter(folder / "f.h5", instrument="f", compression=FILTER, chunk_rows=chunk_rows)
    level = np.zeros((1, COLUMNS))
    for first in range(0, windows * WINDOW_ROWS, chunk_rows):
        rows = min(chunk_rows, windows * WINDOW_ROWS - first)
        walk = level + np.cumsum(rng.integers(-3, 4, (rows, COLUMNS)), axis=0)
        level = walk[-1:]
        time_ns = np.arange(first, first + rows, dtype=np.int64)
        writer.append({"time_ns": time_ns, "features": (walk * 0.01).astype(np.float32)})
    entry = writer.publish()
    manifest = folder / "MANIFEST.json"
    write_manifest(manifest, ShardManifest("features", "f", "daily", (), (entry,), (), ""))
    return Made(manifest, windows, entry.bytes)


class PlainWindows(Dataset[NDArray[Any]]):
    """Windows as one would first write it: h5py in each worker, a window an item."""

    def __init__(self, path: Path, windows: int) -> None:
        self._path = path
        self._windows = windows
        self._file: Any = None

    def __len__(self) -> int:
        return self._windows

    def __getitem__(self, index: int) -> NDArray[Any]:
        if self._file is None:
            self._file = h5py.File(self._path, "r")
        found: NDArray[Any] = self._file["features"][index * WINDOW_ROWS : (index + 1) * WINDOW_ROWS]
        return found


def make_plain_side(made: Made, clock: Callable[[], float]) -> Callable[[], float]:
    """Seconds a thousand windows by torch's DataLoader with 2 workers, once its first batch is there."""
    dataset = PlainWindows(made.manifest.parent / "f.h5", made.windows)

    def read() -> float:
        sampler = RandomSampler(dataset, num_samples=min(_NAIVE_BATCHES * BATCH, made.windows))
        batches = iter(DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=2))
        next(batches)
        started, count = clock(), 0
        for batch in batches:
            count += len(batch)
        return 1000 * (clock() - started) / count

    return read


def make_select_side(windows_ntc: torch.Tensor, clock: Callable[[], float]) -> Callable[[], float]:
    """Seconds a thousand windows by `index_select` into one batch that is used again; the order is made before."""
    batch = torch.empty((BATCH, WINDOW_ROWS, COLUMNS))

    def read() -> float:
        order = torch.randperm(len(windows_ntc))
        whole = len(order) // BATCH * BATCH
        started = clock()
        for first in range(0, whole, BATCH):
            torch.index_select(windows_ntc, 0, order[first : first + BATCH], out=batch)
        return 1000 * (clock() - started) / whole

    return read
