"""One run of pieces: read, flagged, held against its count of rows, and published a shard and a receipt each."""

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from windtunnel.errors import LostRowsError
from windtunnel.ingest.columns import PieceRows, join_batches
from windtunnel.ingest.files import RawFile, check_unchanged
from windtunnel.ingest.flags import FLAGS_COLUMN
from windtunnel.ingest.quarantine import list_rows
from windtunnel.ingest.receipt import Receipt, name_shard, write_receipt
from windtunnel.ingest.sources.base import TIME_COLUMN, Part, Run, Source
from windtunnel.records.data import ShardEntry
from windtunnel.settings.data import DataSettings
from windtunnel.shards.writer import write_shard
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


def make_pieces(job: Job, run: Run, settings: DataSettings, *, source: Source, folder: Path) -> list[Receipt]:
    """Receipts of all pieces of a run, each with its shard published. A run without an end goes to the last piece."""
    started = time.monotonic()
    receipts: list[Receipt] = []
    for rows in _read_pieces(job, run, source):
        check_unchanged(job.raw)
        if receipts:
            write_receipt(folder, job.part.stem, receipts[-1])
        receipts.append(_publish(job, run.first + len(receipts), rows, settings=settings, folder=folder))
    ends = run.end is None or run.end == job.part.pieces
    receipts[-1] = dataclasses.replace(receipts[-1], is_last=ends)
    check_unchanged(job.raw)
    write_receipt(folder, job.part.stem, receipts[-1])
    _tell(job, receipts, time.monotonic() - started)
    return receipts


def check_rows(name: str, rows: PieceRows) -> None:
    """Raise LostRowsError unless rows in = kept + quarantined."""
    kept, rejected = len(rows.arrays.get(TIME_COLUMN.name, ())), len(rows.rejected)
    if rows.rows_in != kept + rejected:
        raise LostRowsError(
            f"{name} has {rows.rows_in} rows, but {kept} were kept and {rejected} quarantined: this is a bug"
        )


def _read_pieces(job: Job, run: Run, source: Source) -> Iterator[PieceRows]:
    """Each piece of a run in order, those too in which no line begins."""
    following = run.first
    batches = source.read(job.raw, job.part, run)
    for piece, group in groupby(batches, key=lambda batch: batch.piece):
        while following < piece:
            yield join_batches((), job.part.columns)
            following += 1
        yield join_batches(group, job.part.columns)
        following += 1
    last = max(run.first + 1, run.end or 0)
    while following < last:
        yield join_batches((), job.part.columns)
        following += 1


def _publish(job: Job, piece: int, rows: PieceRows, *, settings: DataSettings, folder: Path) -> Receipt:
    check_rows(job.raw.spec, rows)
    return Receipt(
        key=job.key,
        piece=piece,
        is_last=False,
        rows_in=rows.rows_in,
        lines=rows.lines,
        flagged=rows.flagged,
        shard=_write_shard(job, piece, rows, settings=settings, folder=folder),
        quarantined=list_rows(rows.rejected),
    )


def _write_shard(job: Job, piece: int, rows: PieceRows, *, settings: DataSettings, folder: Path) -> ShardEntry | None:
    if len(rows.arrays.get(TIME_COLUMN.name, ())) == 0:
        return None
    return write_shard(
        folder / name_shard(job.part.stem, piece),
        rows.arrays,
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
