"""Delimited daily series, plain or gzip: a header, a date in the first column, numbers in the others.

Dates are M/D/YYYY or YYYY-MM-DD, one form a file; a file whose dates show the day before the month is refused. A row
stands for its date at 00:00 UTC: a name for the day, not when its values were known. A missing value (blank, `.`, NA,
NaN, null) is NaN in a kept row; a row with a wrong date, number or count of fields is rejected.
"""

import gzip
import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import RawFile, read_blocks
from windtunnel.ingest.rows import (
    LINE,
    join_rejected,
    not_decimal,
    reject,
    split_fields,
    split_lines,
    split_quoted,
    strip_bom,
)
from windtunnel.ingest.sources.base import Identity, Reading
from windtunnel.records.data import Column

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DELIMITERS = (",", ";", "\t", "|")
_MISSING = ("", ".", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")
_DATE = "#date"
_SUFFIXES = re.compile(r"(\.(csv|txt|tsv|gz))+$", re.IGNORECASE)
_FIRST_DATE, _LAST_DATE = "1677-09-22", "2262-04-10"  # what int64 nanoseconds since 1970 can hold


class _DateForm(NamedTuple):
    words: str
    pattern: str
    format: str
    month: str
    day: str


_SLASHED = _DateForm("M/D/YYYY", r"^\d{1,2}/\d{1,2}/\d{4}$", "%m/%d/%Y", month=r"^(\d+)/", day=r"/(\d+)/")
_ISO = _DateForm("YYYY-MM-DD", r"^\d{4}-\d{2}-\d{2}$", "%Y-%m-%d", month=r"-(\d+)-", day=r"-(\d+)$")


class DailyCsv:
    """The source `daily_csv`."""

    def identify(self, raw: RawFile) -> Identity:
        """Instrument and shard are named as the file is, without its suffixes."""
        name = _make_name(_SUFFIXES.sub("", raw.path.name))
        if not name:
            raise InputFileError(
                f"data file {raw.spec} gives its instrument no name: rename it, such as sp500.csv.gz"
            )
        return Identity(instrument=name, stem=name)

    def read(self, raw: RawFile, *, max_rows: int | None) -> Reading:
        """All value columns as float64."""
        data = strip_bom(_read_text(raw, None if max_rows is None else max_rows + 1))
        header, _, body = data.partition(b"\n")
        delimiter, names = _parse_header(raw, header)
        rows = split_lines(body, first_line=2)
        if rows.is_empty():
            raise InputFileError(f"data file {raw.spec} has a header but no rows: fetch it again")
        fitting, rejected = split_fields(rows, (_DATE, *names), delimiter=delimiter, quotes=True)
        dated, undated = _parse_dates(raw, fitting)
        valued, unvalued = _parse_values(dated, names)
        kept, repeated = reject(valued, [_find_repeats()])
        kept = kept.sort(_DATE)
        columns = (Column("time_ns", "int64", "ns since 1970 UTC, 00:00 of the date"), *_describe(names))
        days = kept[_DATE].cast(pl.Int32).to_numpy().astype(np.int64)
        arrays = {"time_ns": days * 86_400_000_000_000}
        arrays |= {name: kept[name].fill_null(float("nan")).to_numpy() for name in names}
        return Reading(columns, arrays, len(rows), join_rejected([rejected, undated, unvalued, repeated]))


def _describe(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name, "float64", "as published; NaN where missing") for name in names)


def _read_text(raw: RawFile, max_lines: int | None) -> bytes:
    try:
        with raw.path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start.startswith(_GZIP):
                with gzip.open(file) as unpacked:
                    text = b"".join(read_blocks(unpacked, max_lines))
            else:
                text = b"".join(read_blocks(file, max_lines))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputFileError(f"data file {raw.spec} is damaged gzip ({error}): fetch it again") from error
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error
    if raw.path.suffix.lower() == ".gz" and not start.startswith(_GZIP):
        raise InputFileError(f"data file {raw.spec} is named .gz but is not gzip: fetch it again or rename it")
    if start.startswith(_ZIP):
        raise InputFileError(f"data file {raw.spec} is a zip; daily_csv reads plain or gzip text: unpack it")
    if text.startswith(_UTF16) or b"\0" in text:
        raise InputFileError(f"data file {raw.spec} is not UTF-8 text: save it as UTF-8")
    if not text.strip():
        raise InputFileError(f"data file {raw.spec} holds no text: fetch it again")
    return text


def _parse_header(raw: RawFile, header: bytes) -> tuple[str, tuple[str, ...]]:
    text = header.decode("utf-8", errors="replace").strip()
    delimiter = max(_DELIMITERS, key=text.count)
    fields = [field.strip() for field in split_quoted(text, delimiter)]
    names = tuple(_make_name(field) for field in fields[1:])
    if not names:
        raise InputFileError(
            f"data file {raw.spec} starts with {text[:60]!r}, expected a header such as Date,Close "
            "with one of , ; tab |"
        )
    if any(re.match(form.pattern, fields[0]) for form in (_SLASHED, _ISO)):
        raise InputFileError(f"data file {raw.spec} has no header: its first line is data ({text[:60]!r}); add one")
    if not all(names) or len({*names, "time_ns"}) != len(names) + 1:
        raise InputFileError(
            f"data file {raw.spec} has the columns {', '.join(fields)}: expected names, each once; correct its header"
        )
    return delimiter, names


def _make_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _parse_dates(raw: RawFile, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    form = _choose_form(raw, rows)
    parsed = pl.col(_DATE).str.to_date(form.format, strict=False)
    wrong = ~pl.col(_DATE).str.contains(form.pattern) | parsed.is_null()
    far = ~parsed.is_between(pl.lit(_FIRST_DATE).str.to_date(), pl.lit(_LAST_DATE).str.to_date())
    kept, rejected = reject(
        rows,
        [
            pl.when(wrong).then(pl.format(f"date is not {form.words}, as the file's others: {{}}", pl.col(_DATE))),
            pl.when(far).then(pl.format("date is outside 1677 to 2262: {}", pl.col(_DATE))),
        ],
    )
    return kept.with_columns(parsed), rejected


def _choose_form(raw: RawFile, rows: pl.DataFrame) -> _DateForm:
    """The one form that most dates of the file have; never one row after another."""
    counts = {form: int(rows[_DATE].str.contains(form.pattern).sum()) for form in (_SLASHED, _ISO)}
    form = max(counts, key=lambda item: counts[item])
    if counts[form] == 0:
        example = rows[_DATE][0] if len(rows) else ""
        raise InputFileError(
            f"data file {raw.spec} has no date in its first column (first: {example!r}): daily_csv reads one row a "
            f"day dated {_SLASHED.words} or {_ISO.words}"
        )
    _refuse_day_first(raw, rows, form)
    return form


def _refuse_day_first(raw: RawFile, rows: pl.DataFrame, form: _DateForm) -> None:
    """Where the day comes before the month, dates up to the 12th would be misread without a sign."""
    parts = rows.filter(pl.col(_DATE).str.contains(form.pattern)).select(
        month=pl.col(_DATE).str.extract(form.month).cast(pl.Int32),
        day=pl.col(_DATE).str.extract(form.day).cast(pl.Int32),
    )
    swapped = int(((parts["month"] > 12) & (parts["day"] <= 12)).sum())
    right = int(((parts["month"] <= 12) & (parts["day"] > 12)).sum())
    if swapped > right:
        raise InputFileError(
            f"data file {raw.spec} has the day before the month ({swapped} dates have a month above 12 as "
            f"{form.words}): write its dates as {_ISO.words}"
        )


def _parse_values(rows: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    blanked = rows.with_columns(
        pl.when(pl.col(name).is_in(_MISSING)).then(None).otherwise(pl.col(name)).alias(name) for name in names
    )
    kept, rejected = reject(blanked, [not_decimal(name) for name in names])
    return kept.with_columns(pl.col(name).cast(pl.Float64) for name in names), rejected


def _find_repeats() -> pl.Expr:
    first = pl.col(LINE).min().over(_DATE)
    return pl.when(pl.col(LINE) > first).then(pl.format("date {} was on line {} already", pl.col(_DATE), first))
