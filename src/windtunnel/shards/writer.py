"""Writes one shard: an HDF5 file of equally long columns over `time_ns`, published whole or not at all.

The same rows give the same bytes, in however many parts they come: no time stamps inside, a fixed version of the file
format, columns in the given order, and each chunk written once, some groups after the others.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from numpy.typing import NDArray

from windtunnel.artifacts import fsync_dir, fsync_file
from windtunnel.errors import ArtifactError
from windtunnel.records.data import ShardEntry
from windtunnel.shards.groups import SHARD_SCHEMA, find_groups

Arrays = Mapping[str, NDArray[Any]]
_GROUPS_AT_ONCE = 2
"""Written together, a column after the other: fewer calls of HDF5, and the chunks of a window still lie together."""
# Level 1 takes three quarters of the time of level 3, for a tenth more bytes.
_FILTERS: dict[str, Mapping[str, Any]] = {"zstd": hdf5plugin.Zstd(clevel=1), "lz4": hdf5plugin.LZ4()}


class ShardWriter:
    """A shard that grows by rows in order of time, under a temporary name until it is published.

    Raises ArtifactError when the file system does not take it. `discard` it, or publish it.
    """

    def __init__(
        self,
        path: Path,
        *,
        instrument: str,
        compression: str,
        chunk_rows: int,
        units: Mapping[str, str] | None = None,
        input_sha256: str = "",
    ) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
        self._instrument = instrument
        self._filters = _FILTERS[compression]
        self._chunk_rows = chunk_rows
        self._units = units or {}
        self._input_sha256 = input_sha256
        self._file: Any = None
        self._columns: dict[str, Any] = {}
        self._is_made = False
        self._pending: list[Arrays] = []
        self._pending_rows = 0
        self._rows = 0
        self._span: tuple[int, int] | None = None

    def append(self, arrays: Arrays) -> None:
        """Add rows, none of them earlier than the last one; `time_ns` must be among them."""
        _check_arrays(arrays)
        time_ns = arrays["time_ns"]
        if len(time_ns) == 0:
            return
        assert self._span is None or time_ns[0] >= self._span[1], "time_ns decreases"
        self._span = (self._span[0] if self._span else int(time_ns[0]), int(time_ns[-1]))
        self._pending.append(arrays)
        self._pending_rows += len(time_ns)
        step = _GROUPS_AT_ONCE * self._chunk_rows
        if self._pending_rows < step:
            return
        rows = _join(self._pending)
        whole = self._pending_rows - self._pending_rows % step
        with _name_fault(self._path):
            for at in range(0, whole, step):
                self._write({name: array[at : at + step] for name, array in rows.items()})
        self._pending = [{name: array[whole:] for name, array in rows.items()}]
        self._pending_rows -= whole

    def publish(self) -> ShardEntry:
        """Make the shard durable and give it its name; returns its entry, named relative to its folder."""
        assert self._span is not None, "a shard needs rows"
        try:
            with _name_fault(self._path):
                if self._pending_rows:
                    self._write(_join(self._pending))
                self._seal()
                entry = self._describe()
                self._temporary.rename(self._path)
        finally:
            self.discard()
        with _name_fault(self._path):
            fsync_dir(self._path.parent)
        return entry

    def discard(self) -> None:
        """Leave nothing under the temporary name."""
        if self._file is not None:
            try:
                self._file.close()
            except (OSError, RuntimeError):
                pass  # a full disk, which has been told already
            self._file = None
        if self._is_made:
            self._temporary.unlink(missing_ok=True)

    def take_back(self) -> Arrays:
        """All rows so far, which are discarded here."""
        written = [{name: column[()] for name, column in self._columns.items()}] if self._rows else []
        rows = _join([*written, *self._pending])
        self.discard()
        return rows

    def _write(self, arrays: Arrays) -> None:
        """Write rows that begin with a chunk; parts of few chunks keep those of a window close together."""
        count = len(arrays["time_ns"])
        if self._file is None:
            self._create(arrays)
        for name, column in self._columns.items():
            if self._rows:
                column.resize(self._rows + count, axis=0)
            column[self._rows : self._rows + count] = arrays[name]
        self._rows += count

    def _create(self, arrays: Arrays) -> None:
        count = len(arrays["time_ns"])
        chunk_rows = min(self._chunk_rows, count)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._is_made = True
        # A fixed version of the format keeps bytes equal where HDF5 itself is updated; without a cache of chunks each
        # is written when it is given.
        self._file = h5py.File(self._temporary, "x", libver=("v110", "v110"), locking=False, rdcc_nbytes=0)
        self._file.attrs["instrument"] = self._instrument
        self._file.attrs["chunk_rows"] = chunk_rows
        for name, array in arrays.items():
            dataset = self._file.create_dataset(
                name,
                shape=array.shape,
                maxshape=(count if count < self._chunk_rows else None, *array.shape[1:]),
                dtype=array.dtype,
                chunks=(chunk_rows, *array.shape[1:]),
                shuffle=True,
                fletcher32=True,  # a flipped bit is refused when read, not decoded
                track_times=False,
                **self._filters,
            )
            dataset.attrs["unit"] = self._units.get(name, "")
            self._columns[name] = dataset

    def _seal(self) -> None:
        self._file.attrs["rows"] = self._rows
        # Last, and after all else is in the file: what has no schema is no shard, whoever opens it.
        self._file.flush()
        self._file.attrs["schema"] = SHARD_SCHEMA
        self._file.close()
        self._file = None
        fsync_file(self._temporary)

    def _describe(self) -> ShardEntry:
        assert self._span is not None, "a shard needs rows"
        groups, data = find_groups(self._temporary), self._temporary.read_bytes()
        return ShardEntry(
            file=self._path.name,
            instrument=self._instrument,
            rows=self._rows,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            first_ns=self._span[0],
            last_ns=self._span[1],
            input_sha256=self._input_sha256,
            chunk_rows=groups.chunk_rows,
            groups_crc32=tuple(groups.crc32_of(number, data) for number in range(len(groups.chunks))),
        )


def write_shard(path: Path, arrays: Arrays, *, instrument: str, compression: str, chunk_rows: int) -> ShardEntry:
    """Publish `arrays` at `path` and return its entry, named relative to the folder of `path`.

    `time_ns` must be among them: int64 nanoseconds since 1970 UTC, never decreasing.
    Raises ArtifactError when the file system does not take it.
    """
    writer = ShardWriter(path, instrument=instrument, compression=compression, chunk_rows=chunk_rows)
    try:
        writer.append(arrays)
        return writer.publish()
    finally:
        writer.discard()


@contextmanager
def _name_fault(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"shard {path} cannot be written: {error}: check the folder's free space and permissions"
        ) from error


def _check_arrays(arrays: Arrays) -> None:
    assert "time_ns" in arrays, "a shard needs time_ns"
    time_ns = arrays["time_ns"]
    assert time_ns.dtype == np.int64, f"time_ns is {time_ns.dtype}, expected int64"
    assert time_ns.ndim == 1, f"time_ns has {time_ns.ndim} dims, expected one"
    assert bool(np.all(time_ns[1:] >= time_ns[:-1])), "time_ns decreases"
    lengths = {name: len(array) for name, array in arrays.items()}
    assert set(lengths.values()) == {len(time_ns)}, f"columns differ in length: {lengths}"


def _join(parts: list[Arrays]) -> Arrays:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
