"""What a source is: it says what a raw file holds from its name, and reads its rows into typed columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl
from numpy.typing import NDArray

from windtunnel.ingest.files import RawFile
from windtunnel.records.data import Column

TIME_COLUMN = Column("time_ns", "int64", "ns since 1970 UTC")


@dataclass(frozen=True)
class Identity:
    """What a raw file becomes: its instrument, and the name of its shard without `.h5`."""

    instrument: str
    stem: str


@dataclass(frozen=True)
class Reading:
    """A raw file as read: `rows_in` counted in its text, `arrays` in time order, `rejected` as in `ingest.rows`."""

    columns: tuple[Column, ...]
    arrays: Mapping[str, NDArray[Any]]
    rows_in: int
    rejected: pl.DataFrame


class Source(Protocol):
    """One raw format. Both methods raise InputFileError for a file that is not of it; they never guess."""

    def identify(self, raw: RawFile) -> Identity:
        """What `raw` becomes; reads no rows."""
        ...

    def read(self, raw: RawFile, *, max_rows: int | None) -> Reading:
        """The first `max_rows` rows of `raw`, or all."""
        ...
