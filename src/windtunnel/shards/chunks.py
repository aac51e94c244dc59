"""All chunks of a dataset's columns by the rows that they hold, and copies of rows without HDF5's own reads.

HDF5 reads under one lock and through a cache; here its index alone is used, once a shard: threads read, verify and
unpack chunks each for themselves, and write rows where they are wanted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.data import ShardEntry
from windtunnel.shards.decoders import STAGES, scatter
from windtunnel.shards.files import ShardFiles
from windtunnel.shards.groups import SHARD_SCHEMA
from windtunnel.shards.windows import Rows, Series

_FILTERS = {
    h5py.h5z.FILTER_SHUFFLE: STAGES["shuffle"],
    hdf5plugin.LZ4.filter_id: STAGES["lz4"],
    hdf5plugin.Zstd.filter_id: STAGES["zstd"],
    h5py.h5z.FILTER_FLETCHER32: STAGES["fletcher32"],
}


@dataclass(frozen=True)
class Form:
    """What a column's rows are, alike in all shards."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """Of one row."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, unpacked."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Request:
    """Runs of rows of a column: `rows[i]` of them from `starts[i]` on, to row `to_rows[i]` of an array at `out`."""

    column: str
    starts: Rows
    rows: Rows
    to_rows: Rows
    out: int


@dataclass(frozen=True, eq=False)
class _Stored:
    """A column's chunks: bytes at an offset of their shard's file, and what they went through."""

    form: Form
    offset: Rows
    bytes: Rows
    stages: Rows


class ChunkStore:
    """The chunks of `columns` in all shards of `series`, in order of the row space."""

    def __init__(self, folder: Path, series: Sequence[Series], columns: Sequence[str]) -> None:
        entries = [entry for one in series for entry in one.shards]
        self.files = ShardFiles([folder / entry.file for entry in entries], [entry.bytes for entry in entries])
        ends = np.cumsum([entry.rows for entry in entries], dtype=np.int64)
        self.rows = int(ends[-1]) if entries else 0
        starts = [
            np.arange(first, end, max(entry.chunk_rows, 1), dtype=np.int64)
            for first, end, entry in zip(ends - [entry.rows for entry in entries], ends, entries, strict=True)
        ]
        self.first_rows: Rows = np.concatenate(starts)
        """First row of each chunk."""
        self._end_rows: Rows = np.append(self.first_rows[1:], self.rows)
        # A shard of fewer rows than a chunk has a shorter one.
        self._lengths, length = np.unique([entry.chunk_rows for entry in entries], return_inverse=True)
        self._length = np.repeat(length, [len(part) for part in starts])
        self._shard = np.repeat(np.arange(len(entries)), [len(part) for part in starts])
        parts = [_read_index(folder / entry.file, entry, columns) for entry in entries]
        self._columns = {name: _join(name, [part[name] for part in parts]) for name in columns}

    def form(self, column: str) -> Form:
        """What the column's rows are."""
        return self._columns[column].form

    def load(self, column: str, *, threads: int) -> NDArray[Any]:
        """All rows of a column."""
        form = self.form(column)
        out = np.empty((self.rows, *form.shape), form.dtype)
        starts = self.first_rows
        self.read([Request(column, starts, self._end_rows - starts, starts, out.ctypes.data)], threads=threads)
        return out

    def unpack(self, column: str, *, threads: int) -> None:
        """Read, verify and unpack every chunk of a column, and keep nothing; raises as `read` does."""
        starts = self.first_rows
        self.read([Request(column, starts, self._end_rows - starts, starts, 0)], threads=threads)

    def read(self, requests: Sequence[Request], *, threads: int) -> None:
        """Fill the output of each request; every chunk is unpacked once a request.

        Raises an error that names the shard which is missing, cut or altered.
        """
        works, copies, at = [], [], 0
        for number, request in enumerate(requests):
            work, copy = self._plan(number, request, first_copy=at)
            works.append(work)
            copies.append(copy)
            at += len(copy)
        joined = np.concatenate(works)
        order = np.argsort(joined[:, 0], kind="stable")  # in order of the files
        chunk, work = joined[order, 0], joined[order, 1:]
        shards = self._shard[chunk]
        unique, inverse = np.unique(shards, return_inverse=True)
        descriptors = self.files.open(unique)
        work[:, 0] = np.array([descriptors[int(shard)] for shard in unique], np.int64)[inverse]
        columns = np.array([self._describe(request, rows) for request in requests for rows in self._lengths])
        failure = scatter(columns, work, np.concatenate(copies), threads=threads)
        if failure is not None:
            column = requests[work[failure[0], 3] // len(self._lengths)].column
            self._refuse(chunk[failure[0]], column, failure[1])

    def _describe(self, request: Request, chunk_rows: int) -> tuple[int, int, int]:
        form = self.form(request.column)
        return chunk_rows * form.row_bytes, form.dtype.itemsize, request.out

    def _plan(self, number: int, request: Request, *, first_copy: int) -> tuple[Rows, Rows]:
        """A line a chunk: its number and what windtunnel.h wants to know; a line a copy, chunk by chunk."""
        stored, starts, rows = self._columns[request.column], request.starts, request.rows
        first = np.searchsorted(self.first_rows, starts, "right") - 1
        last = np.searchsorted(self.first_rows, starts + rows - 1, "right") - 1
        run, chunk = _spread(first, last)
        chunk_first = self.first_rows[chunk]
        begin = np.maximum(starts[run], chunk_first)
        end = np.minimum((starts + rows)[run], self._end_rows[chunk])
        order = np.argsort(chunk, kind="stable")
        size = stored.form.row_bytes
        copies = np.stack(
            [(begin - chunk_first) * size, ((request.to_rows - starts)[run] + begin) * size, (end - begin) * size],
            axis=1,
        )[order]
        unique, at, counts = np.unique(chunk[order], return_index=True, return_counts=True)
        work = np.empty((len(unique), 8), np.int64)
        work[:, 0] = unique
        work[:, 2], work[:, 3] = stored.offset[unique], stored.bytes[unique]
        work[:, 4], work[:, 5] = number * len(self._lengths) + self._length[unique], stored.stages[unique]
        work[:, 6], work[:, 7] = first_copy + at, first_copy + at + counts
        return work, copies

    def _refuse(self, chunk: int, column: str, reason: str) -> None:
        path, first = self.files.path(int(self._shard[chunk])), int(self.first_rows[chunk])
        shard_first = int(self.first_rows[np.searchsorted(self._shard, self._shard[chunk])])
        raise ArtifactError(
            f"shard {path}: {column} from row {first - shard_first} on {reason}: check it with `windtunnel fsck "
            "shards`, or run the stage that makes it again"
        )


def _spread(first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """Numbers of runs, and of the chunks first[i] to last[i] that each touches."""
    counts = last - first + 1
    run = np.repeat(np.arange(len(first)), counts)
    return run, first[run] + np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)


def _read_index(path: Path, entry: ShardEntry, columns: Sequence[str]) -> dict[str, _Stored]:
    try:
        # Read once: no cache of chunks, and no lock, which some file systems refuse; shards never change.
        with h5py.File(path, "r", locking=False, rdcc_nbytes=0, rdcc_nslots=1) as file:
            if file.attrs.get("schema") != SHARD_SCHEMA:
                raise ArtifactError(f"{path} has schema {file.attrs.get('schema')!r}, expected {SHARD_SCHEMA!r}")
            missing = [name for name in columns if name not in file]
            if missing:
                raise ArtifactError(f"shard {path} has no column {', '.join(missing)}; it has {', '.join(file)}")
            return {name: _read_column(path, entry, file[name]) for name in columns}
    except FileNotFoundError:
        raise InputFileError(f"shard {path} is missing: run the stage that makes it again") from None
    except (OSError, KeyError, RuntimeError) as error:
        raise ArtifactError(f"shard {path} is damaged or no HDF5 file ({error}): make it again") from error


def _read_column(path: Path, entry: ShardEntry, dataset: Any) -> _Stored:
    chunks, count = dataset.chunks, -(-entry.rows // max(entry.chunk_rows, 1))
    is_ours = chunks is not None and chunks[0] == entry.chunk_rows and chunks[1:] == dataset.shape[1:]
    if not is_ours or len(dataset) != entry.rows or not dataset.dtype.isnative:
        raise ArtifactError(f"shard {path}: {dataset.name} is not in chunks of {entry.chunk_rows} whole rows")
    properties = dataset.id.get_create_plist()
    filters = [_name_filter(path, properties.get_filter(number)[0]) for number in range(properties.get_nfilters())]
    offset, size, stages = (np.full(count, -1, np.int64) for _ in range(3))

    def keep(info: h5py.h5d.StoreInfo) -> None:
        number = info.chunk_offset[0] // entry.chunk_rows
        offset[number], size[number] = info.byte_offset, info.size
        stages[number] = sum(stage for bit, stage in enumerate(filters) if not info.filter_mask >> bit & 1)

    dataset.id.chunk_iter(keep)
    if (offset < 0).any():
        raise ArtifactError(f"shard {path}: {dataset.name} lacks chunks: make it again")
    return _Stored(Form(dataset.dtype, dataset.shape[1:]), offset, size, stages)


def _name_filter(path: Path, number: int) -> int:
    if number not in _FILTERS:
        raise ArtifactError(f"shard {path} is packed with HDF5 filter {number}, expected one of {list(_FILTERS)}")
    return _FILTERS[number]


def _join(name: str, parts: Sequence[_Stored]) -> _Stored:
    forms = {part.form for part in parts}
    if len(forms) != 1:
        raise ArtifactError(f"column {name} differs between shards: {', '.join(map(str, forms))}")
    return _Stored(
        parts[0].form,
        *(np.concatenate([getattr(part, field) for part in parts]) for field in ("offset", "bytes", "stages")),
    )
