"""Reads one shard into memory, and refuses by name what is not a whole shard of ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  # registers the filters that shards are compressed with
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.shards.groups import SHARD_SCHEMA


def read_shard(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Columns of the shard at `path`, those in `names` or all in their order in the file.

    Raises InputFileError when it is missing, ArtifactError when it is foreign, damaged or lacks a column.
    """
    if not path.exists():
        raise InputFileError(f"shard {path} does not exist: run the stage that makes it first")
    try:
        with h5py.File(path, "r", locking=False) as file:
            _check_schema(path, file)
            # The file keeps names by alphabet; the order of writing is not part of a shard.
            wanted = list(file) if names is None else list(names)
            missing = [name for name in wanted if name not in file]
            if missing:
                raise ArtifactError(f"shard {path} has no column {', '.join(missing)}; it has {', '.join(file)}")
            arrays = {name: file[name][()] for name in wanted}
    except (OSError, KeyError, RuntimeError) as error:  # what h5py raises for a file that is cut, altered or no HDF5
        raise ArtifactError(
            f"shard {path} is damaged or no HDF5 file ({error}): remove it and make it again"
        ) from error
    _check_lengths(path, arrays)
    return arrays


def _check_schema(path: Path, file: Any) -> None:
    found = file.attrs.get("schema")
    if found != SHARD_SCHEMA:
        raise ArtifactError(f"{path} has schema {found!r}, expected {SHARD_SCHEMA!r}: it is no shard of this version")


def _check_lengths(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ArtifactError(f"shard {path} is damaged: its columns differ in length: {lengths}")
