"""The quarantine: rows that did not fit, as CSV of file, member, line, reason and raw text, beside the manifest."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from windtunnel.artifacts import write_atomic
from windtunnel.ingest.rows import LINE, RAW, REASON

QUARANTINE = "quarantine.csv"
_HEADER = ("file", "member", "line", "reason", "raw")

Row = tuple[int, str, str]


def list_rows(rejected: pl.DataFrame) -> tuple[Row, ...]:
    """Line, reason and raw text of each rejected row."""
    return tuple(rejected.select(LINE, REASON, RAW).iter_rows())


def write_quarantine(folder: Path, rows: Iterable[tuple[str, str, int, str, str]]) -> str:
    """Publish all rows as one file and return its name; without any, remove an older one and return ''."""
    path = folder / QUARANTINE
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    empty = text.tell()
    writer.writerows(rows)
    if text.tell() == empty:
        path.unlink(missing_ok=True)
        return ""
    write_atomic(path, text.getvalue().encode())
    return path.name
