"""Writes one shard: an HDF5 file of equally long columns over `time_ns`, published whole or not at all.

The same arrays give the same bytes: no time stamps inside, a fixed file format version, columns in the given order.
"""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace
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

_FILTERS: dict[str, Mapping[str, Any]] = {"zstd": hdf5plugin.Zstd(clevel=3), "lz4": hdf5plugin.LZ4()}


def write_shard(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    *,
    instrument: str,
    compression: str,
    chunk_rows: int,
    units: Mapping[str, str] | None = None,
    input_sha256: str = "",
) -> ShardEntry:
    """Publish `arrays` at `path` and return its entry, named relative to the folder of `path`.

    `time_ns` must be among them: int64 nanoseconds since 1970 UTC, never decreasing. `units` become attributes.
    Raises ArtifactError when the file system does not take it.
    """
    _check_arrays(arrays)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_file(
                temporary, arrays, instrument, compression=compression, chunk_rows=chunk_rows, units=units or {}
            )
            entry = _describe(temporary, path.name, instrument, arrays["time_ns"])
            entry = replace(entry, input_sha256=input_sha256)
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)
        fsync_dir(path.parent)
    except OSError as error:
        raise ArtifactError(
            f"shard {path} cannot be written: {error}: check the folder's free space and permissions"
        ) from error
    return entry


def _write_file(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    instrument: str,
    *,
    compression: str,
    chunk_rows: int,
    units: Mapping[str, str],
) -> None:
    # A fixed version of the format keeps bytes equal where HDF5 itself is updated.
    with h5py.File(path, "x", libver=("v110", "v110"), locking=False) as file:
        file.attrs["instrument"] = instrument
        file.attrs["rows"] = len(arrays["time_ns"])
        file.attrs["chunk_rows"] = min(chunk_rows, len(arrays["time_ns"]))
        for name, array in arrays.items():
            dataset = _write_column(file, name, array, compression=compression, chunk_rows=chunk_rows)
            dataset.attrs["unit"] = units.get(name, "")
        # Last, and after all else is in the file: what has no schema is no shard, whoever opens it.
        file.flush()
        file.attrs["schema"] = SHARD_SCHEMA
    fsync_file(path)


def _check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    assert "time_ns" in arrays, "a shard needs time_ns"
    time_ns = arrays["time_ns"]
    assert time_ns.dtype == np.int64, f"time_ns is {time_ns.dtype}, expected int64"
    assert time_ns.ndim == 1, f"time_ns has {time_ns.ndim} dims, expected one"
    assert len(time_ns) > 0, "a shard needs rows"
    assert bool(np.all(time_ns[1:] >= time_ns[:-1])), "time_ns decreases"
    lengths = {name: len(array) for name, array in arrays.items()}
    assert set(lengths.values()) == {len(time_ns)}, f"columns differ in length: {lengths}"


def _write_column(file: Any, name: str, array: NDArray[Any], *, compression: str, chunk_rows: int) -> Any:
    return file.create_dataset(
        name,
        data=array,
        chunks=(min(chunk_rows, len(array)), *array.shape[1:]),
        shuffle=True,
        fletcher32=True,  # a flipped bit is refused when read, not decoded
        track_times=False,
        **_FILTERS[compression],
    )


def _describe(written: Path, file: str, instrument: str, time_ns: NDArray[np.int64]) -> ShardEntry:
    groups = find_groups(written)
    data = written.read_bytes()
    return ShardEntry(
        file=file,
        instrument=instrument,
        rows=len(time_ns),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        first_ns=int(time_ns[0]),
        last_ns=int(time_ns[-1]),
        chunk_rows=groups.chunk_rows,
        groups_crc32=tuple(groups.crc32_of(number, data) for number in range(len(groups.chunks))),
    )
