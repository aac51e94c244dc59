"""Delimited daily series, plain or gzip: a header, a date in the first column, numbers in the others.

Dates are M/D/YYYY or YYYY-MM-DD, one form a file; a file whose dates show the day before the month is refused. A row
stands for its date at 00:00 UTC: a name for the day, not when its values were known. A missing value (blank, `.`, NA,
NaN, null) is NaN in a kept row; a row with a wrong date, number or count of fields is rejected.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import RawFile, count_lines, read_blocks
from windtunnel.ingest.rows import (
    LINE,
    join_rejected,
    make_name,
    not_decimal,
    reject,
    split_fields,
    split_lines,
    split_quoted,
    strip_bom,
)
from windtunnel.ingest.sources.base import TIME_COLUMN, Batch, Part, Run
from windtunnel.ingest.unpack import Member, list_members, open_member
from windtunnel.records.data import Column
from windtunnel.settings.data import DataSettings

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


@dataclass(frozen=True)
class _Head:
    delimiter: str
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of the shard."""
        values = (Column(name, "float64", "as published; NaN where missing") for name in self.names)
        return (Column(TIME_COLUMN.name, "int64", "ns since 1970 UTC, 00:00 of the date"), *values)


class DailyCsv:
    """The source `daily_csv`."""

    def __init__(self, settings: DataSettings) -> None:
        """It has no settings of its own."""

    def identify(self, raw: RawFile) -> tuple[Part, ...]:
        """Instrument and shard are named as the file is, without its suffixes."""
        name = make_name(_SUFFIXES.sub("", raw.path.name))
        if not name:
            raise InputFileError(
                f"data file {raw.spec} gives its instrument no name: rename it, such as sp500.csv.gz"
            )
        members = list_members(raw)
        if len(members) != 1:
            raise InputFileError(f"data file {raw.spec} holds {len(members)} files, expected one: unpack them")
        head = _parse_header(raw, _read_text(raw, members[0], 1).partition(b"\n")[0])
        return (Part(name, name, members[0], columns=head.columns, detail=head),)

    def read(self, raw: RawFile, part: Part, run: Run) -> Iterator[Batch]:
        """All value columns as float64, in one batch: a date given twice may be lines away."""
        head: _Head = part.detail
        text = _read_text(raw, part.member, None if run.max_rows is None else run.max_rows + 1)
        rows = split_lines(text.partition(b"\n")[2], first_line=2)
        if rows.is_empty():
            raise InputFileError(f"data file {raw.spec} has a header but no rows: fetch it again")
        fitting, rejected = split_fields(rows, (_DATE, *head.names), delimiter=head.delimiter, quotes=True)
        dated, undated = _parse_dates(raw, fitting)
        valued, unvalued = _parse_values(dated, head.names)
        kept, repeated = reject(valued, [_find_repeats()])
        time_ns = kept[_DATE].cast(pl.Int64) * 86_400_000_000_000
        frame = kept.select(
            time_ns.alias(TIME_COLUMN.name), *(pl.col(name).fill_null(float("nan")) for name in head.names)
        )
        yield Batch(frame, len(rows), join_rejected([rejected, undated, unvalued, repeated]), count_lines(text))


def _read_text(raw: RawFile, member: Member, max_lines: int | None) -> bytes:
    with open_member(raw, member) as stream:
        text = b"".join(read_blocks(stream, max_lines))
    if text.startswith(_UTF16) or b"\0" in text:
        raise InputFileError(f"data file {raw.spec} is not UTF-8 text: save it as UTF-8")
    if not text.strip():
        raise InputFileError(f"data file {raw.spec} holds no text: fetch it again")
    return strip_bom(text)


def _parse_header(raw: RawFile, header: bytes) -> _Head:
    text = header.decode("utf-8", errors="replace").strip()
    delimiter = max(_DELIMITERS, key=text.count)
    fields = [field.strip() for field in split_quoted(text, delimiter)]
    names = tuple(make_name(field) for field in fields[1:])
    if not names:
        raise InputFileError(
            f"data file {raw.spec} starts with {text[:60]!r}, expected a header such as Date,Close "
            "with one of , ; tab |"
        )
    if any(re.match(form.pattern, fields[0]) for form in (_SLASHED, _ISO)):
        raise InputFileError(f"data file {raw.spec} has no header: its first line is data ({text[:60]!r}); add one")
    if not all(names) or len({*names, TIME_COLUMN.name, "flags"}) != len(names) + 2:
        raise InputFileError(
            f"data file {raw.spec} has the columns {', '.join(fields)}: expected names, each once; correct its header"
        )
    return _Head(delimiter, names)


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
