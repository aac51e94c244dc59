"""Raw files read through a source, whole, without a shard."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from windtunnel.ingest.columns import read_piece, sort_rows
from windtunnel.ingest.files import RawFile
from windtunnel.ingest.rows import LINE, RAW, REASON
from windtunnel.ingest.sources.base import Run, Source
from windtunnel.records.data import Column


@dataclass(frozen=True)
class Reading:
    """All rows of a file's first text."""

    columns: tuple[Column, ...]
    arrays: dict[str, Any]
    rows_in: int
    rejected: pl.DataFrame
    flagged: dict[str, int]
    notes: tuple[str, ...]

    @property
    def reasons(self) -> list[tuple[int, str, str]]:
        """Line, reason and text of each row that did not fit."""
        return self.rejected.select(LINE, REASON, RAW).rows()


def read_raw(source: Source, raw: RawFile, *, max_rows: int | None = None) -> Reading:
    """Read the one text of `raw`; rows in are kept or rejected, or this fails."""
    (part,) = source.identify(raw)
    parts: list[Any] = []
    rows = read_piece(source.read(raw, part, Run(max_rows=max_rows)), part.columns, parts.append)
    arrays = {name: array for name, array in sort_rows(parts).items() if name != "flags"}
    assert rows.rows_in == len(rows.rejected) + (len(arrays["time_ns"]) if arrays else 0)
    return Reading(part.columns, arrays, rows.rows_in, rows.rejected, rows.flagged, part.notes)
