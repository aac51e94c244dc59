"""Text to rows of strings, then to rows of numbers: what does not fit leaves with its line, its text and a reason.

A row keeps the columns `#line` (in the file, from 1) and `#raw` until it is either kept or rejected.
"""

import csv
import re
from collections.abc import Mapping, Sequence

import polars as pl

LINE, RAW, REASON = "#line", "#raw", "#reason"
REJECTED = pl.Schema({LINE: pl.Int64, REASON: pl.String, RAW: pl.String})

DECIMAL = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_WHOLE = r"^[+-]?\d+$"
_BOM = b"\xef\xbb\xbf"


def strip_bom(data: bytes) -> bytes:
    """The text without the UTF-8 byte-order mark that some programs put first."""
    return data.removeprefix(_BOM)


def split_lines(data: bytes, *, first_line: int = 1) -> pl.DataFrame:
    """Lines that are not blank, numbered as in the file; CRLF or LF ends one, the last may lack it."""
    lines = [line.removesuffix("\r") for line in data.decode("utf-8", errors="replace").split("\n")]
    frame = pl.DataFrame(
        {LINE: range(first_line, first_line + len(lines)), RAW: lines}, schema_overrides={LINE: pl.Int64}
    )
    return frame.filter(pl.col(RAW).str.strip_chars() != "")


def no_rejected() -> pl.DataFrame:
    """No rejected rows."""
    return pl.DataFrame(schema=REJECTED)


def split_fields(
    rows: pl.DataFrame, names: Sequence[str], *, delimiter: str, quotes: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with exactly one field per name, as stripped strings, and the rest rejected: never a shifted row.

    With `quotes`, fields may stand in double quotes, as CSV has them; a record never spans lines.
    """
    if quotes and rows[RAW].str.contains('"', literal=True).any():
        fields = pl.Series([split_quoted(raw, delimiter) for raw in rows[RAW]], dtype=pl.List(pl.String))
    else:
        fields = rows[RAW].str.split(delimiter)
    counted = rows.with_columns(fields.alias("#fields"))
    count = pl.col("#fields").list.len()
    reason = pl.when(count != len(names)).then(pl.format("{} " + f"fields, expected {len(names)}", count))
    kept, rejected = reject(counted, [reason])
    columns = [pl.col("#fields").list.get(i).str.strip_chars().alias(name) for i, name in enumerate(names)]
    return kept.select(LINE, RAW, *columns), rejected


def reject(rows: pl.DataFrame, reasons: Sequence[pl.Expr]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows by the first of `reasons` that is not null for them."""
    judged = rows.with_columns(pl.coalesce(*reasons, pl.lit(None, dtype=pl.String)).alias(REASON))
    rejected = judged.filter(pl.col(REASON).is_not_null()).select(LINE, REASON, RAW)
    return judged.filter(pl.col(REASON).is_null()).drop(REASON), rejected


def join_rejected(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All rejected rows of a file in the order of its lines."""
    return pl.concat([no_rejected(), *parts]).sort(LINE)


def not_decimal(name: str) -> pl.Expr:
    """A reason where the string in column `name` is no finite decimal number; null passes."""
    finite = pl.col(name).cast(pl.Float64, strict=False).is_finite().fill_null(False)
    bad = ~pl.col(name).str.contains(DECIMAL) | ~finite
    return pl.when(bad).then(pl.format(f"{name} is not a number: " + "{}", pl.col(name)))


def not_whole(name: str) -> pl.Expr:
    """A reason where the string in column `name` is no whole number of 64 bits; null passes."""
    bad = ~pl.col(name).str.contains(_WHOLE) | pl.col(name).cast(pl.Int64, strict=False).is_null()
    return pl.when(bad).then(pl.format(f"{name} is not a whole number: " + "{}", pl.col(name)))


def outside(bounds: Mapping[str, tuple[float, float]]) -> list[pl.Expr]:
    """Reasons where a number is below its lower bound, or not below its upper one."""
    return [
        pl.when((pl.col(name) < low) | (pl.col(name) >= high)).then(
            pl.format(f"{name} is {{}}, expected {low:g} or more and less than {high:g}", pl.col(name))
        )
        for name, (low, high) in bounds.items()
    ]


def split_quoted(raw: str, delimiter: str) -> list[str]:
    """Fields of one line, some perhaps in double quotes; none where a quote stays open."""
    try:
        return next(csv.reader([raw], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []  # an open quote: no fields, which no layout expects


def make_name(text: str) -> str:
    """A name of columns, instruments and files: lower case, digits and underscores."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
