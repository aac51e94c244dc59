"""Manifests of shards: what raw files became, row for row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

ROW_FACTS = ("flags", "ts_recv", "sequence")
"""Columns that tell of a row and not of the market: no features are made of them."""


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
    flagged: Mapping[str, int] = field(default_factory=dict)
    """Rows kept that carry each flag of `flags`, by the flag's name."""
    notes: tuple[str, ...] = ()
    """What is odd about the file as a whole, a sentence each."""


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
    input_sha256: str = ""
    """SHA-256 of the raw file that its rows are from; empty for features."""
    chunk_rows: int = 0
    """Rows of a chunk group: a chunk of every column."""
    groups_crc32: tuple[str, ...] = ()
    """CRC-32 in hex of each chunk group: its chunks as stored, one column after the other by name."""


@dataclass(frozen=True)
class ShardManifest:
    """`MANIFEST.json` of a dataset's shards or of its feature shards."""

    SCHEMA: ClassVar[str] = "windtunnel.shards/2"

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
    quarantine_sha256: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that made raw shards, so that they can be made again."""
    kernels: str = ""
    """What computed the features: `cpp` or `reference`; empty in raw shards."""
    sha256: str = field(default="", compare=False)
    """Hash of the manifest's own file with nothing in this field's place; empty in one that is not signed."""
