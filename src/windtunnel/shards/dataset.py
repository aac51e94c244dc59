"""A dataset's shards as samples: from its manifest to series, a split in time, windows, and a loader over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError, SettingsError
from windtunnel.shards.chunks import ChunkStore
from windtunnel.shards.loader import Loader, RankShare
from windtunnel.shards.manifest import read_manifest
from windtunnel.shards.order import BufferedOrder, GlobalOrder
from windtunnel.shards.sources import StreamSource, load_columns
from windtunnel.shards.windows import Field, Series, Windows, join_series
from windtunnel.units import format_bytes

Shuffle = Literal["global", "buffered"]
_SPAN_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class Dataset:
    """Columns of all shards of a manifest, in one row space."""

    store: ChunkStore
    series: tuple[Series, ...]

    def times_ns(self) -> list[NDArray[np.int64]]:
        """When each row of each series happened."""
        times = self.store.load("time_ns", threads=1)
        return [times[one.first_row : one.end_row] for one in self.series]


def open_dataset(manifest_path: Path, columns: Sequence[str]) -> Dataset:
    """The shards of a manifest by the index of each; raises ArtifactError where there are none or they differ."""
    manifest = read_manifest(manifest_path)
    if not manifest.shards:
        raise ArtifactError(f"{manifest_path} lists no shards: run the stage that makes it again")
    series = join_series(manifest.shards)
    return Dataset(ChunkStore(manifest_path.parent, series, tuple(dict.fromkeys(("time_ns", *columns)))), series)


def make_loader(
    dataset: Dataset,
    windows: Windows,
    fields: Sequence[Field],
    *,
    shuffle: Shuffle,
    seed: int,
    share: RankShare,
    threads: int = 1,
    buffer_bytes: int = 1 << 30,
) -> Loader:
    """A loader over `windows`: `global` holds whole columns in memory, `buffered` two buffers of `buffer_bytes`.

    Raises SettingsError where not even the windows of one chunk fit a buffer.
    """
    sample_bytes = sum(field.rows * dataset.store.form(field.column).row_bytes for field in fields)
    if shuffle == "global":
        columns = tuple(dict.fromkeys(field.column for field in fields))
        batches = max(1, _SPAN_BYTES // (sample_bytes * share.batch_size))
        order = GlobalOrder(windows.samples, seed, span=batches * share.batch_size)
        source = load_columns(dataset.store, columns, threads=threads)
        return Loader(source, windows, fields, order=order, seed=seed, share=share, threads=threads)
    buffered = order_chunks(dataset.store, windows, fields, seed=seed, buffer_samples=buffer_bytes // sample_bytes)
    source_of_chunks = StreamSource(dataset.store)
    return Loader(source_of_chunks, windows, fields, order=buffered, seed=seed, share=share, threads=threads)


def order_chunks(
    store: ChunkStore, windows: Windows, fields: Sequence[Field], *, seed: int, buffer_samples: int
) -> BufferedOrder:
    """The buffered order over the chunks in which samples begin."""
    begin = min(field.begin for field in fields)
    edges = np.append(store.first_rows, store.rows) - begin
    counts = np.diff(windows.count_below(edges))
    most = int(counts.max())
    if buffer_samples < most:
        sample_bytes = sum(field.rows * store.form(field.column).row_bytes for field in fields)
        raise SettingsError(
            f"a chunk holds {most} windows of {format_bytes(sample_bytes)}, a buffer {buffer_samples}: raise "
            f"buffer_bytes to {format_bytes(most * sample_bytes)} or more, or the stride of the windows"
        )
    return BufferedOrder(counts, buffer_samples // most, seed)
