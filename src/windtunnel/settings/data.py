"""Settings of ingest: which raw files make a dataset."""

from typing import Literal

from pydantic import Field

from windtunnel.settings.base import Settings


class TextSettings(Settings):
    """How delimited text is read, where its own beginning does not tell."""

    delimiter: str = Field(default="", pattern="^.?$")
    """Character between fields; found from the first line when empty."""
    columns: tuple[str, ...] = ()
    """Names of the fields, for a file without a header or instead of one. A field named `-` is left out."""
    names: dict[str, str] = {}
    """Other names for columns, such as `{bid: bid_price}`."""
    time: tuple[str, ...] = ()
    """Column of the time at which a row happened, or of its date and its time of day; found by name when empty."""
    time_form: Literal["", "epoch", "iso", "compact", "month_first", "day_first", "clock", "since_midnight"] = ""
    """Form of the times; found from the first rows when empty. `clock` (HH:MM:SS) and `since_midnight` take the date
    from the file's name."""
    time_unit: Literal["", "s", "ms", "us", "ns"] = ""
    """Unit of epochs and of times since midnight; found by their size when empty."""
    zone: str = ""
    """Zone of times that name none: `UTC`, a name such as `America/New_York`, or an offset such as `-05:00`."""
    received: str = ""
    """Column of the time at which a row was received; found by name when empty."""
    sequence: str = ""
    """Column of the publisher's sequence number; found by name when empty."""
    price_scale: float = Field(default=1.0, gt=0)
    """What prices in the file are multiplied by, such as 10000."""
    missing: tuple[str, ...] = ("", ".", "-", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")
    """Texts for a number that is not there: NaN in a row that is kept."""
    decimal: Literal[".", ","] = "."
    """Sign before the fraction of a number."""
    thousands: Literal["", ",", ".", " ", "'"] = ""
    """Sign between thousands; a number with one is quarantined when empty."""


class DataSettings(Settings):
    dataset: str = Field(pattern=r"^[a-z0-9_]+$")
    """Name of the dataset: its folder under `shards/`."""
    source: Literal["daily_csv", "lean_tick", "delimited"]
    """Source that reads the files: `daily_csv`, `lean_tick` or `delimited` (docs/data.md)."""
    files: tuple[str, ...] = Field(min_length=1)
    """Raw files: paths (relative ones from the project's folder) or `package:<name>/<path>` inside an
    installed Python package. Each file is one instrument and makes one shard."""
    text: TextSettings = TextSettings()
    """How the source `delimited` reads its files."""
    max_rows: int | None = Field(default=None, gt=0)
    """Read at most this many rows of each file; all when null."""
    compression: str = Field(default="zstd", pattern="^(zstd|lz4)$")
    """HDF5 filter of the shards: `zstd` (smaller) or `lz4` (faster)."""
    chunk_rows: int = Field(default=65536, gt=0)
    """Rows in one HDF5 chunk."""
    shard_text: int = Field(default=64 << 20, ge=64)
    """Bytes of a file's text, unpacked, that make one shard: a longer file makes several, which bounds memory."""
