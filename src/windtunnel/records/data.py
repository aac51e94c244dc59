"""Manifests of shards: what raw files became, row for row."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Column:
    """A column of a shard; `unit` in words, such as `USD`, `shares`, `ns since 1970 UTC`."""

    name: str
    dtype: str
    unit: str = ""


@dataclass(frozen=True)
class InputFile:
    """A raw file as it was read: rows in = rows kept + rows quarantined."""

    path: str
    bytes: int
    sha256: str
    rows_in: int
    rows_kept: int
    rows_quarantined: int


@dataclass(frozen=True)
class ShardEntry:
    """One published HDF5 file, named relative to its manifest."""

    file: str
    instrument: str
    rows: int
    bytes: int
    sha256: str
    first_ns: int
    last_ns: int


@dataclass(frozen=True)
class ShardManifest:
    """`MANIFEST.json` of a dataset's shards or of its feature shards."""

    SCHEMA: ClassVar[str] = "windtunnel.shards/1"

    kind: str
    """`raw` or `features`."""
    dataset: str
    source: str
    """Source that read the files, or the recipe that made the features."""
    columns: tuple[Column, ...]
    shards: tuple[ShardEntry, ...]
    inputs: tuple[InputFile, ...]
    quarantine: str
    """File of the rows that did not fit, with reasons, relative to the manifest; empty when there are none."""
    parent_sha256: str = ""
    """Content hash of the manifest that features were computed from."""
