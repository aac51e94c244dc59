"""What the beginning of a delimited text tells: delimiter, names, time, kinds of columns.

It guesses nothing that could be read in two ways: such a text is refused with the setting that decides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from windtunnel.errors import InputFileError
from windtunnel.ingest import flags, timeforms
from windtunnel.ingest.rows import DECIMAL, REASON, make_name, split_fields, split_lines, split_quoted
from windtunnel.ingest.sources.base import TIME_COLUMN
from windtunnel.ingest.timeforms import TimeForm, UnknownFormError
from windtunnel.records.data import Column
from windtunnel.settings.data import TextSettings

DELIMITERS = (",", ";", "\t", "|")
TIME = "time_ns"
SEQUENCE = "sequence"
LEFT_OUT = "-"
BOM = b"\xef\xbb\xbf"
_TIMES = (
    "ts_event", "timestamp", "time", "datetime", "date_time", "date", "event_time", "open_time", "ts",
    "exchange_time", "trade_time", "time_ns", "time_ms", "time_us", "gmt_time", "local_time", "index",
)  # fmt: skip
_CLOCKS = ("time", "time_of_day")
_RECEIVED = ("ts_recv", "ts_received", "recv_time", "receive_time", "received", "local_timestamp", "recv_ts")
_SEQUENCES = ("sequence", "seq", "seq_num", "sequence_number", "seqno", "agg_trade_id", "trade_id", "update_id", "id")
_WIDTHS = (8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class TextLayout:
    """How one text is read; fields are named in the file's order, those left out by `-` and their place."""

    delimiter: str
    fields: tuple[str, ...]
    head_bytes: int
    """Of the mark, blank lines and header before the first row."""
    head_lines: int
    has_header: bool
    times: tuple[str, ...]
    time_form: TimeForm
    received: str
    received_form: TimeForm
    sequence: str
    numbers: tuple[str, ...]
    texts: tuple[tuple[str, int], ...]
    """Columns of text, and the bytes that one has at most."""
    prices: tuple[str, ...]
    names: Mapping[str, str]
    """Name in the shard of each field that has another one in the file."""
    price_scale: float
    has_fractions: bool
    """Whether some epoch of the beginning has a fraction."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of the shard."""
        unit = "as published; NaN where missing"
        found = [TIME_COLUMN]
        if self.received:
            found.append(Column(flags.RECEIVED, "int64", "ns since 1970 UTC"))
        if self.sequence:
            found.append(Column(SEQUENCE, "int64", "the publisher's number"))
        widths = dict(self.texts)
        for name in self.fields:
            if name in self.numbers:
                found.append(Column(self.names.get(name, name), "float64", unit))
            elif name in widths:
                found.append(Column(self.names.get(name, name), f"S{widths[name]}", "text"))
        return tuple(found)


@dataclass(frozen=True)
class _Head:
    delimiter: str
    fields: tuple[str, ...]
    bytes: int
    lines: int
    has_header: bool


def find_layout(sample: bytes, settings: TextSettings, *, where: str, file_name: str) -> TextLayout:
    """The layout of the text that begins with `sample`; raises InputFileError that names `where` and what is open."""
    head = _find_head(sample, settings, where)
    rows = split_lines(sample[head.bytes :], first_line=head.lines + 1)
    if rows.is_empty():
        raise InputFileError(f"{where} has a header but no rows: fetch it again")
    split, wrong = split_fields(rows, head.fields, delimiter=head.delimiter, quotes=True)
    if 2 * len(wrong) > len(rows):
        reason = wrong[REASON].value_counts(sort=True)[REASON][0]
        raise InputFileError(
            f"{where} has lines of {reason} as in its header ({', '.join(head.fields)}): values would stand in the "
            "wrong columns; correct the header, or name all fields in data.text.columns"
        )
    try:
        return _describe(split, head, settings, file_name)
    except UnknownFormError as error:
        raise InputFileError(f"{where} {error}") from None


def _describe(split: pl.DataFrame, head: _Head, settings: TextSettings, file_name: str) -> TextLayout:
    times = _find_times(head.fields, settings)
    received = settings.received or next(
        (name for name in _RECEIVED if name in head.fields and name not in times), ""
    )
    sequence = settings.sequence or next((name for name in _SEQUENCES if name in head.fields), "")
    for name in (received, sequence):
        if name and name not in head.fields:
            raise UnknownFormError(f"has no column {name!r} (data.text); it has {', '.join(head.fields)}")
    rest = [name for name in head.fields if name not in (*times, received, sequence) and name[0] != LEFT_OUT]
    names = {name: settings.names[name] for name in head.fields if name in settings.names}
    numbers = tuple(
        name for name in rest if names.get(name, name) in flags.NUMBERS or is_number(split[name], settings)
    )
    _check_names([names.get(name, name) for name in rest], received, sequence)
    prices = (*flags.BIDS, *flags.ASKS, *flags.PRICES, *flags.OTHER_PRICES)
    return TextLayout(
        delimiter=head.delimiter,
        fields=head.fields,
        head_bytes=head.bytes,
        head_lines=head.lines,
        has_header=head.has_header,
        times=times,
        time_form=_find_time_form(join_times(split, times), settings, file_name, column=" and ".join(times)),
        received=received,
        received_form=_find_time_form(split[received], settings, file_name, column=received, is_received=True)
        if received
        else TimeForm("epoch", "ns"),
        sequence=sequence,
        numbers=numbers,
        texts=tuple((name, _find_width(split[name])) for name in rest if name not in numbers),
        prices=tuple(name for name in numbers if names.get(name, name) in prices),
        names=names,
        price_scale=settings.price_scale,
        has_fractions=any(bool(split[name].str.contains(r"^\d+\.\d").any()) for name in (*times, received) if name),
    )


def _check_names(names: Sequence[str], received: str, sequence: str) -> None:
    taken = [
        TIME,
        flags.FLAGS_COLUMN.name,
        *([flags.RECEIVED] if received else []),
        *([SEQUENCE] if sequence else []),
    ]
    for name in names:
        if name in taken:
            raise UnknownFormError(
                f"has a column {name!r} beside the one that becomes it: give it another name in data.text.names"
            )
        taken.append(name)


def join_times(rows: pl.DataFrame, times: Sequence[str]) -> pl.Series:
    """The texts of a row's time: one column's, or those of its date and its time of day."""
    return rows.select(pl.concat_str([pl.col(name) for name in times], separator=" ")).to_series()


def is_number(texts: pl.Series, settings: TextSettings) -> bool:
    """Whether a column is one of numbers: most of what stands there is, or nothing does."""
    known = texts.filter(~texts.is_in(list(settings.missing)))
    numeric = int(to_plain_numbers(known, settings).str.contains(DECIMAL).sum())
    return 2 * numeric > len(known) or len(known) == 0 or 2 * _count_grouped(known) > len(known)


def to_plain_numbers(texts: pl.Series, settings: TextSettings) -> pl.Series:
    """Numbers as everybody reads them, by the settings; thousands must stand in threes."""
    if settings.decimal == "." and not settings.thousands:
        return texts
    point, comma = re.escape(settings.decimal), re.escape(settings.thousands)
    found = texts
    if settings.thousands:
        grouped = found.str.contains(rf"^[+-]?\d{{1,3}}({comma}\d{{3}})+({point}\d*)?$")
        spread = found.str.replace_all(settings.thousands, "", literal=True)
        found = pl.select(pl.when(grouped).then(spread).otherwise(found)).to_series()
    if settings.decimal == ",":
        # What has a point now is no number of this file.
        pointed = found.str.contains(".", literal=True)
        plain = found.str.replace(",", ".", literal=True)
        found = pl.select(pl.when(pointed).then(pl.lit("?") + found).otherwise(plain)).to_series()
    return found


def _count_grouped(texts: pl.Series) -> int:
    return int(texts.str.contains(r"^[+-]?\d{1,3}([,.' ]\d{3})*([.,]\d*)?$").sum())


def _find_head(sample: bytes, settings: TextSettings, where: str) -> _Head:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in sample:
        raise InputFileError(f"{where} is not UTF-8 text: save it as UTF-8")
    start = len(sample) - len(sample.removeprefix(BOM).lstrip(b" \r\n"))
    first, newline, _ = sample[start:].partition(b"\n")
    text = first.decode("utf-8", errors="replace").strip("\r")
    if not text.strip():
        raise InputFileError(f"{where} holds no text: fetch it again")
    delimiter = settings.delimiter or max(DELIMITERS, key=text.count)
    if delimiter not in text:
        raise InputFileError(
            f"{where} starts with {text[:60]!r}, expected fields with one of , ; tab | between: set "
            "data.text.delimiter"
        )
    fields = [field.strip() for field in split_quoted(text, delimiter)]
    is_header = not any(_is_value(field, settings) for field in fields)
    if not is_header and not settings.columns:
        raise InputFileError(
            f"{where} has no header: its first line is data ({text[:60]!r}); name its {len(fields)} fields in "
            "data.text.columns"
        )
    names = _make_names(settings.columns or fields, where, is_named=bool(settings.columns))
    until = start + len(first) + len(newline) if is_header else start
    return _Head(delimiter, names, until, sample[:until].count(b"\n"), is_header)


def _make_names(fields: Sequence[str], where: str, *, is_named: bool) -> tuple[str, ...]:
    names = [LEFT_OUT if field == LEFT_OUT else make_name(field) for field in fields]
    if names and not names[0] and not is_named:
        names[0] = "index"  # as pandas writes an index without a name
    if len(names) > 1 and not names[-1]:
        names[-1] = LEFT_OUT  # a delimiter at the end of each line
    named = [name for name in names if name != LEFT_OUT]
    if not all(named) or len(set(named)) < len(named):
        raise InputFileError(
            f"{where} has the columns {', '.join(fields)}: expected names, each once; correct its header or set "
            "data.text.columns"
        )
    return tuple(f"{LEFT_OUT}{place}" if name == LEFT_OUT else name for place, name in enumerate(names))


def _is_value(field: str, settings: TextSettings) -> bool:
    patterns = (DECIMAL, *timeforms.PATTERNS.values())
    plain = to_plain_numbers(pl.Series([field]), settings)[0]
    return any(re.search(pattern, text) for pattern in patterns for text in (field, plain))


def _find_times(fields: Sequence[str], settings: TextSettings) -> tuple[str, ...]:
    missing = [name for name in settings.time if name not in fields]
    if missing:
        raise UnknownFormError(f"has no column {missing[0]!r} (data.text.time); it has {', '.join(fields)}")
    if settings.time:
        return settings.time
    clock = next((name for name in _CLOCKS if name in fields), "")
    if "date" in fields and clock:
        return ("date", clock)
    name = next((name for name in _TIMES if name in fields), "")
    if not name:
        raise UnknownFormError(f"has no column of times by name ({', '.join(fields)}): set data.text.time")
    return (name,)


def _find_time_form(
    texts: pl.Series, settings: TextSettings, file_name: str, *, column: str, is_received: bool = False
) -> TimeForm:
    sample = texts.filter(texts.is_not_null() & (texts != ""))
    told: str = "" if is_received else settings.time_form
    unit: str = "" if is_received else settings.time_unit
    kind, found_unit = told, ""
    if told in ("", "epoch"):
        kind, found_unit = ("epoch", unit) if unit else _find(sample, column)
    unit = unit or found_unit
    day = timeforms.find_day(file_name) if kind in ("clock", "since_midnight") else ""
    if kind in ("clock", "since_midnight") and not day:
        raise UnknownFormError(f"has times of day but no date in its name {file_name!r}: put YYYYMMDD there")
    if kind in ("epoch", "since_midnight") and not unit:
        raise UnknownFormError("has times whose unit is open: set data.text.time_unit")
    if timeforms.needs_zone(kind, sample) and not settings.zone:
        raise UnknownFormError(
            f"has times that name no zone (column {column}: {sample[0]!r}): set data.text.zone, such as UTC, "
            "America/New_York or -05:00"
        )
    _check_zone(settings.zone)
    return TimeForm(kind, unit, settings.zone, day, is_told=bool(settings.time_unit) and not is_received)


def _find(sample: pl.Series, column: str) -> tuple[str, str]:
    try:
        return timeforms.find_form(sample)
    except UnknownFormError as error:
        raise UnknownFormError(f"(column {column}) {error}") from None


def _check_zone(zone: str) -> None:
    if not zone or timeforms.parse_offset_s(zone) is not None:
        return
    try:
        pl.Series([0]).cast(pl.Datetime("ns")).dt.replace_time_zone(zone)
    except pl.exceptions.PolarsError:
        raise UnknownFormError(
            f"cannot be read in data.text.zone={zone!r}: expected UTC, a name such as America/New_York, or an offset "
            "such as -05:00"
        ) from None


def _find_width(texts: pl.Series) -> int:
    longest = texts.str.len_bytes().max()
    assert longest is None or isinstance(longest, int)
    return next((width for width in _WIDTHS if width >= (longest or 0)), _WIDTHS[-1])
