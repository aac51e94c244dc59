"""What a raw file is and what would become of it, found by reading it once. Writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.ingest.columns import read_piece
from windtunnel.ingest.files import RawFile, find_raw_file
from windtunnel.ingest.flags import add_counts
from windtunnel.ingest.plan import SOURCES
from windtunnel.ingest.rows import LINE, REASON
from windtunnel.ingest.sources.base import Part, Run, Source
from windtunnel.ingest.sources.text_layout import TextLayout
from windtunnel.ingest.work import check_rows
from windtunnel.records.data import Column
from windtunnel.settings.data import DataSettings, TextSettings

_ORDER = ("lean_tick", "daily_csv", "delimited")
"""The narrower format first: what it takes, it reads better."""
_SHOWN = 3


@dataclass(frozen=True)
class Reason:
    """Rows that would be quarantined alike: the reason up to its value, how many, and the first lines."""

    reason: str
    rows: int
    lines: tuple[int, ...]


@dataclass(frozen=True)
class PartReport:
    """One text of a file."""

    member: str
    instrument: str
    columns: tuple[Column, ...]
    time: str
    """Form, unit and zone of its times."""
    price_scale: float
    rows_in: int
    rows_kept: int
    first_ns: int | None
    last_ns: int | None
    flagged: dict[str, int]
    notes: tuple[str, ...]
    quarantined: tuple[Reason, ...]


@dataclass(frozen=True)
class FileReport:
    """A raw file: the source that reads it, and why each narrower one does not."""

    path: str
    bytes: int
    packing: str
    source: str
    """Empty where none reads it."""
    refusals: dict[str, str]
    parts: tuple[PartReport, ...]


def inspect_file(spec: str, *, source: str = "", text: TextSettings | None = None) -> FileReport:
    """Read `spec` with `source`, or with the first one that takes it; raises InputFileError for no file at all."""
    raw = find_raw_file(spec)
    refusals: dict[str, str] = {}
    for name in (source,) if source else _ORDER:
        settings = DataSettings.model_validate(
            {"dataset": "inspected", "source": name, "files": (spec,), "text": text or TextSettings()}
        )
        reader = SOURCES[name](settings)
        try:
            parts = reader.identify(raw)
            reports = tuple(_inspect_part(raw, part, reader, settings) for part in parts)
        except InputFileError as error:
            refusals[name] = str(error)
            continue
        return FileReport(spec, raw.bytes, parts[0].member.packing, name, refusals, reports)
    return FileReport(spec, raw.bytes, "", "", refusals, ())


def render_report(report: FileReport) -> Iterator[str]:
    """Lines for people."""
    yield f"{report.path}: {report.bytes:,} bytes, {report.packing or 'unreadable'}"
    yield f"source: {report.source or 'none of ours reads it'}"
    if not report.source:
        yield from (f"  {name}: {why}" for name, why in report.refusals.items())
    for part in report.parts:
        yield from _render_part(part)


def _inspect_part(raw: RawFile, part: Part, source: Source, settings: DataSettings) -> PartReport:
    kept = rows_in = before = 0
    spans: list[tuple[int, int]] = []
    flagged: list[dict[str, int]] = []
    rejected: list[pl.DataFrame] = []
    batches = source.read(raw, part, Run(piece_bytes=settings.shard_text))
    for _, group in groupby(batches, key=lambda batch: batch.piece):
        rows = read_piece(group, part.columns, lambda arrays: spans.append(_span(arrays["time_ns"])))
        check_rows(raw.spec, rows)
        kept += rows.kept
        rows_in += rows.rows_in
        flagged.append(rows.flagged)
        rejected.append(rows.rejected.select(pl.col(LINE) + before, REASON))
        before += rows.lines
    if kept == 0 and not part.notes:
        first = next((frame.row(0) for frame in rejected if len(frame)), (0, "it holds none"))
        raise InputFileError(f"data file {raw.spec}: none of its {rows_in} rows fits (line {first[0]}: {first[1]})")
    return PartReport(
        member=part.member.name,
        instrument=part.instrument,
        columns=part.columns,
        time=_describe_time(part),
        price_scale=_describe_scale(part, settings),
        rows_in=rows_in,
        rows_kept=kept,
        first_ns=min((first for first, _ in spans), default=None),
        last_ns=max((last for _, last in spans), default=None),
        flagged=add_counts(flagged),
        notes=part.notes,
        quarantined=_group_reasons(rejected),
    )


def _span(time_ns: NDArray[np.int64]) -> tuple[int, int]:
    return int(time_ns.min()), int(time_ns.max())


def _describe_time(part: Part) -> str:
    if isinstance(part.detail, TextLayout):
        return part.detail.time_form.words
    return part.columns[0].unit if part.columns else ""


def _describe_scale(part: Part, settings: DataSettings) -> float:
    return 10_000.0 if settings.source == "lean_tick" else settings.text.price_scale


def _group_reasons(rejected: list[pl.DataFrame]) -> tuple[Reason, ...]:
    """Reasons without the value that each row adds behind its colon, the most frequent first."""
    if not rejected:
        return ()
    rows = pl.concat(rejected).with_columns(pl.col(REASON).str.extract(r"^([^:]*)").alias("#kind"))
    grouped = rows.group_by("#kind").agg(pl.len().alias("#rows"), pl.col(LINE).sort().head(_SHOWN))
    found = [Reason(kind, count, tuple(lines)) for kind, count, lines in grouped.iter_rows()]
    return tuple(sorted(found, key=lambda item: (-item.rows, item.reason)))


def _render_part(part: PartReport) -> Iterator[str]:
    yield f"instrument {part.instrument}" + (f" (member {part.member})" if part.member else "")
    yield f"  time: {part.time}" + (f"; prices x {part.price_scale:g}" if part.price_scale != 1 else "")
    yield "  columns: " + ", ".join(f"{column.name} {column.dtype}" for column in part.columns)
    if part.first_ns is not None and part.last_ns is not None:
        first, last = (str(pl.Series([ns]).cast(pl.Datetime("ns"))[0]) for ns in (part.first_ns, part.last_ns))
        yield f"  from {first} to {last} UTC"
    yield f"  {part.rows_in:,} rows: {part.rows_kept:,} kept, {part.rows_in - part.rows_kept:,} quarantined"
    yield from (f"  odd: {note}" for note in part.notes)
    yield from (f"  odd: {count:,} rows are {name.replace('_', ' ')}" for name, count in part.flagged.items())
    for item in part.quarantined:
        lines = ", ".join(str(line) for line in item.lines)
        yield f"  quarantine: {item.rows:,} rows: {item.reason} (line {lines}{', ...' if item.rows > _SHOWN else ''})"
