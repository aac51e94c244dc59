"""Rows of delimited text by its layout: whole blocks through polars' own reader, or one row after the other.

What the first way takes, the second would take alike; a block with anything else goes the second way.
"""

from collections.abc import Iterator

import polars as pl

from windtunnel.ingest import flags
from windtunnel.ingest.files import count_lines
from windtunnel.ingest.rows import (
    LINE,
    RAW,
    join_rejected,
    not_decimal,
    not_whole,
    reject,
    split_fields,
    split_lines,
)
from windtunnel.ingest.sources.base import UNDEFINED
from windtunnel.ingest.sources.text_layout import SEQUENCE, TIME, TextLayout, join_times, to_plain_numbers
from windtunnel.ingest.timeforms import TimeForm
from windtunnel.ingest.timestamps import parse_epochs, parse_times
from windtunnel.settings.data import TextSettings

UNDEFINED_NUMBERS = (2.0**63, -(2.0**63), (2**63 - 1) / 1e9, (2**63 - 1) / 1e8, 1.7976931348623157e308)
"""What publishers write for no price: the bounds of int64, also as fixed point, and of float64."""
_UNDECODED = "\N{REPLACEMENT CHARACTER}"
_TIMES = {TIME: "#time", flags.RECEIVED: "#received"}


def parse_whole(text: bytes, layout: TextLayout, settings: TextSettings) -> pl.DataFrame | None:
    """All rows at once, or None where any row or value does not plainly fit."""
    if b'"' in text or b"\0" in text or settings.decimal != "." or settings.thousands or not text:
        return None
    kinds: dict[str, pl.DataType] = {name: pl.String() for name in layout.fields}
    kinds |= dict.fromkeys(_list_whole_numbers(layout), pl.Int64()) | dict.fromkeys(layout.numbers, pl.Float64())
    kinds |= {name: pl.Categorical() for name, _ in layout.texts}
    missing = [word for word in settings.missing if word]  # a blank is null to polars anyway
    try:
        frame = pl.read_csv(
            text, has_header=False, schema=kinds, separator=layout.delimiter, quote_char=None, null_values=missing
        )
    except pl.exceptions.PolarsError:
        return None
    delimiters = text.count(layout.delimiter.encode())
    if len(frame) != count_lines(text) or delimiters != len(frame) * (len(layout.fields) - 1):
        return None  # a null may be a blank field, and not a field that is not there
    return _type_whole(frame, layout)


def parse_by_row(
    text: bytes, layout: TextLayout, settings: TextSettings, *, first_line: int
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Rows that fit, those that do not, and how many there were."""
    rows = split_lines(text, first_line=first_line)
    split, wrong_count = split_fields(rows, layout.fields, delimiter=layout.delimiter, quotes=True)
    plain = split.with_columns(to_plain_numbers(split[name], settings).alias(name) for name in layout.numbers)
    missing = [*settings.missing]
    blanked = plain.with_columns(
        pl.when(split[name].is_in(missing)).then(None).otherwise(pl.col(name)).alias(name) for name in layout.numbers
    )
    reasons = [not_decimal(name) for name in layout.numbers]
    reasons += [not_whole(layout.sequence)] if layout.sequence else []
    reasons += [reason for name, width in layout.texts for reason in _not_text(name, width)]
    fitting, unread = reject(blanked, reasons)
    times = {name: parse_times(texts, form) for name, texts, form in _list_times(fitting, layout)}
    timed = fitting.with_columns(pl.Series(_TIMES[name], time_ns) for name, (time_ns, _) in times.items())
    kept, untimed = reject(timed, [pl.lit(reason) for _, reason in times.values()])
    typed = kept.with_columns(
        *(pl.col(name).cast(pl.Float64) for name in layout.numbers),
        *([pl.col(layout.sequence).cast(pl.Int64)] if layout.sequence else []),
        *(pl.col(name).cast(pl.Categorical) for name, _ in layout.texts),
    )
    return _select(typed.drop(LINE, RAW), layout), join_rejected([wrong_count, unread, untimed]), len(rows)


def _type_whole(frame: pl.DataFrame, layout: TextLayout) -> pl.DataFrame | None:
    full = [*layout.times, layout.received, layout.sequence, *(name for name, _ in layout.texts)]
    if any(frame[name].null_count() for name in full if name):
        return None
    if not all(frame[name].is_finite().all() for name in layout.numbers):
        return None
    for name, width in layout.texts:
        if any(len(code.encode()) > width or code != code.strip() for code in frame[name].unique()):
            return None
    for name, texts, form in _list_times(frame, layout):
        if texts.dtype == pl.Int64:
            time_ns, fits = parse_epochs(texts.to_numpy(), form)
            is_read = bool(fits.all())
        else:
            time_ns, reasons = parse_times(texts.str.strip_chars(), form)
            is_read = reasons.null_count() == len(reasons)
        if not is_read:
            return None
        frame = frame.with_columns(pl.Series(_TIMES[name], time_ns))
    return _select(frame, layout)


def _select(typed: pl.DataFrame, layout: TextLayout) -> pl.DataFrame:
    """The shard's columns in their order, prices in their own unit, and where a number stood for none."""
    undefined = [pl.col(name).is_in(UNDEFINED_NUMBERS).fill_null(False) for name in layout.numbers]
    values = {name: _clean_number(typed[name], name, layout) for name in layout.numbers}
    values |= {name: typed[name] for name, _ in layout.texts}
    return typed.select(
        pl.col(_TIMES[TIME]).alias(TIME),
        *([pl.col(_TIMES[flags.RECEIVED]).alias(flags.RECEIVED)] if layout.received else []),
        *([pl.col(layout.sequence).alias(SEQUENCE)] if layout.sequence else []),
        *(values[name].alias(layout.names.get(name, name)) for name in layout.fields if name in values),
        pl.any_horizontal(pl.lit(False), *undefined).alias(UNDEFINED),
    )


def _clean_number(numbers: pl.Series, name: str, layout: TextLayout) -> pl.Series:
    known = numbers.set(numbers.is_in(UNDEFINED_NUMBERS), None).fill_null(float("nan"))
    if name not in layout.prices or layout.price_scale == 1:
        return known
    # numpy's quotient rounds once; polars multiplies by the reciprocal.
    return pl.Series(known.to_numpy() / layout.price_scale)


def _list_whole_numbers(layout: TextLayout) -> Iterator[str]:
    if layout.time_form.kind == "epoch" and not layout.has_fractions:
        yield from layout.times
    if layout.received and layout.received_form.kind == "epoch" and not layout.has_fractions:
        yield layout.received
    if layout.sequence:
        yield layout.sequence


def _list_times(frame: pl.DataFrame, layout: TextLayout) -> Iterator[tuple[str, pl.Series, TimeForm]]:
    single = len(layout.times) == 1
    yield TIME, frame[layout.times[0]] if single else join_times(frame, layout.times), layout.time_form
    if layout.received:
        yield flags.RECEIVED, frame[layout.received], layout.received_form


def _not_text(name: str, width: int) -> list[pl.Expr]:
    long = pl.col(name).str.len_bytes() > width
    undecoded = pl.col(name).str.contains(_UNDECODED, literal=True)
    null = pl.col(name).str.contains("\0", literal=True)  # fixed-length bytes would lose it at their end
    return [
        pl.when(null).then(pl.format(f"{name} has a NUL byte: {{}}", pl.col(name))),
        pl.when(undecoded).then(pl.format(f"{name} is not UTF-8: {{}}", pl.col(name))),
        pl.when(long).then(pl.format(f"{name} has more than {width} bytes: {{}}", pl.col(name))),
    ]
