"""One run of pieces: read, flagged, held against its count of rows, and published a shard and a receipt each."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from windtunnel.errors import LostRowsError
from windtunnel.ingest.columns import Arrays, PieceRows, read_piece, sort_rows
from windtunnel.ingest.files import RawFile, check_unchanged, read_ahead
from windtunnel.ingest.flags import FLAGS_COLUMN
from windtunnel.ingest.quarantine import list_rows
from windtunnel.ingest.receipt import Receipt, name_shard, write_receipt
from windtunnel.ingest.sources.base import TIME_COLUMN, Batch, Part, Run, Source
from windtunnel.records.data import ShardEntry
from windtunnel.settings.data import DataSettings
from windtunnel.shards.writer import ShardWriter
from windtunnel.units import format_seconds


@dataclass(frozen=True)
class Job:
    """One text to read: a part of a raw file, with the key of what it becomes."""

    raw: RawFile
    part: Part
    sha256: str = ""
    """Of the raw file."""
    key: str = ""


@dataclass(frozen=True)
class Task:
    """A run of pieces of job number `job`."""

    job: int
    run: Run
    bytes: int
    """Text to read, as far as it is known."""


class _EarlyShard:
    """A shard that is written while its rows are read, as long as they come in order of time.

    What is written is not kept in memory besides: once a row is out of order, it is taken back from the file.
    """

    def __init__(self, open_writer: Callable[[], ShardWriter]) -> None:
        self._open_writer = open_writer
        self._writer: ShardWriter | None = None
        self._last_ns: int | None = None
        self._unordered: list[Arrays] = []

    def add(self, arrays: Arrays) -> None:
        """Write rows, or once they are out of order keep all to the end."""
        time_ns = arrays[TIME_COLUMN.name]
        follows = self._last_ns is None or time_ns[0] >= self._last_ns
        if not self._unordered and follows and bool(np.all(time_ns[1:] >= time_ns[:-1])):
            self._last_ns = int(time_ns[-1])
            self._writer = self._writer or self._open_writer()
            self._writer.append(arrays)
            return
        if self._writer is not None:
            self._unordered.append(dict(self._writer.take_back()))
            self._writer = None
        self._unordered.append(arrays)

    def publish(self) -> ShardEntry | None:
        """The shard of all rows; None where there are none."""
        if self._unordered:
            self._writer = self._open_writer()
            self._writer.append(sort_rows(self._unordered))
        return self._writer.publish() if self._writer is not None else None

    def discard(self) -> None:
        """Leave nothing of what is not published."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None


def make_pieces(job: Job, run: Run, settings: DataSettings, *, source: Source, folder: Path) -> list[Receipt]:
    """Receipts of all pieces of a run, each with its shard published. A run without an end goes to the last piece."""
    started = time.monotonic()
    receipts: list[Receipt] = []
    for batches in _split_pieces(source.read(job.raw, job.part, run), run):
        receipt = _make_piece(job, run.first + len(receipts), batches, settings=settings, folder=folder)
        check_unchanged(job.raw)
        if receipts:
            write_receipt(folder, job.part.stem, receipts[-1])
        receipts.append(receipt)
    ends = run.end is None or run.end == job.part.pieces
    receipts[-1] = dataclasses.replace(receipts[-1], is_last=ends)
    write_receipt(folder, job.part.stem, receipts[-1])
    _tell(job, receipts, time.monotonic() - started)
    return receipts


def check_rows(name: str, rows: PieceRows) -> None:
    """Raise LostRowsError unless rows in = kept + quarantined."""
    if rows.rows_in != rows.kept + len(rows.rejected):
        raise LostRowsError(
            f"{name} has {rows.rows_in} rows, but {rows.kept} were kept and {len(rows.rejected)} quarantined: "
            "this is a bug"
        )


def _split_pieces(batches: Iterator[Batch], run: Run) -> Iterator[Iterable[Batch]]:
    """The batches of each piece of a run in order; none for a piece in which no line begins."""
    following = run.first
    # Rows are parsed in a thread of their own while those before are written.
    for piece, group in groupby(read_ahead(batches), key=lambda batch: batch.piece):
        yield from ((),) * (piece - following)
        yield group
        following = piece + 1
    yield from ((),) * (max(run.first + 1, run.end or 0) - following)


def _make_piece(job: Job, piece: int, batches: Iterable[Batch], *, settings: DataSettings, folder: Path) -> Receipt:
    shard = _EarlyShard(lambda: _open_writer(job, piece, settings, folder))
    try:
        rows = read_piece(batches, job.part.columns, shard.add)
        check_rows(job.raw.spec, rows)
        entry = shard.publish()
    finally:
        shard.discard()
    return Receipt(
        key=job.key,
        piece=piece,
        is_last=False,
        rows_in=rows.rows_in,
        lines=rows.lines,
        flagged=rows.flagged,
        shard=entry,
        quarantined=list_rows(rows.rejected),
    )


def _open_writer(job: Job, piece: int, settings: DataSettings, folder: Path) -> ShardWriter:
    return ShardWriter(
        folder / name_shard(job.part.stem, piece),
        instrument=job.part.instrument,
        compression=settings.compression,
        chunk_rows=settings.chunk_rows,
        units={column.name: column.unit for column in (*job.part.columns, FLAGS_COLUMN)},
        input_sha256=job.sha256,
    )


def _tell(job: Job, receipts: list[Receipt], seconds: float) -> None:
    kept = sum(receipt.shard.rows for receipt in receipts if receipt.shard is not None)
    quarantined = sum(len(receipt.quarantined) for receipt in receipts)
    files = [receipt.shard.file for receipt in receipts if receipt.shard is not None]
    made = f"{files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''}" if files else "no shard"
    counts = f"{kept:,} rows kept, {quarantined:,} quarantined"
    print(f"ingest: {job.raw.spec}: {counts} -> {made} ({format_seconds(seconds)})", flush=True)
