"""Settings of ingest: which raw files make a dataset."""

from typing import Literal

from pydantic import Field

from windtunnel.settings.base import Settings


class DataSettings(Settings):
    dataset: str = Field(pattern=r"^[a-z0-9_]+$")
    """Name of the dataset: its folder under `shards/`."""
    source: Literal["daily_csv", "lean_tick"]
    """Source that reads the files: `daily_csv` or `lean_tick`."""
    files: tuple[str, ...] = Field(min_length=1)
    """Raw files: paths (relative ones from the project's folder) or `package:<name>/<path>` inside an
    installed Python package. Each file is one instrument and makes one shard."""
    max_rows: int | None = Field(default=None, gt=0)
    """Read at most this many rows of each file; all when null."""
    compression: str = Field(default="zstd", pattern="^(zstd|lz4)$")
    """HDF5 filter of the shards: `zstd` (smaller) or `lz4` (faster)."""
    chunk_rows: int = Field(default=65536, gt=0)
    """Rows in one HDF5 chunk."""
