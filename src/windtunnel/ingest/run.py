"""The stage: raw files to shards, a quarantine and a manifest, over as many ranks as there are."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.comm.base import Comm, run_on_all, run_on_root
from windtunnel.errors import InputFileError, LostRowsError, SettingsError
from windtunnel.ingest.files import RawFile, find_raw_file, hash_raw_file
from windtunnel.ingest.partition import deal_files
from windtunnel.ingest.quarantine import list_rows, write_quarantine
from windtunnel.ingest.receipt import Receipt, find_receipt, hash_code, make_key, write_receipt
from windtunnel.ingest.rows import LINE, REASON
from windtunnel.ingest.sources.base import Identity, Reading, Source
from windtunnel.ingest.sources.daily_csv import DailyCsv
from windtunnel.ingest.sources.lean_tick import LeanTick
from windtunnel.records.data import Column, InputFile, ShardManifest
from windtunnel.settings.data import DataSettings
from windtunnel.shards.writer import write_shard
from windtunnel.units import format_seconds

SOURCES: dict[str, Source] = {"daily_csv": DailyCsv(), "lean_tick": LeanTick()}


@dataclass(frozen=True)
class Job:
    """One raw file to read and what it becomes."""

    raw: RawFile
    identity: Identity


def run_ingest(settings: DataSettings, *, out: Path, comm: Comm) -> ShardManifest:
    """Read every file of `settings` into a shard beside `out`, then publish the manifest at `out`.

    Shards that are still right are kept. Shards and manifest do not depend on the number of ranks.
    """
    jobs = run_on_root(comm, lambda: plan_jobs(settings))
    mine = deal_files([job.raw.bytes for job in jobs], ranks=comm.size)[comm.rank]
    dealt = run_on_all(comm, lambda: {index: ingest_file(jobs[index], settings, out.parent) for index in mine})
    receipts = {index: receipt for hand in dealt for index, receipt in hand.items()}
    return run_on_root(comm, lambda: _publish(settings, [receipts[index] for index in range(len(jobs))], out))


def plan_jobs(settings: DataSettings) -> tuple[Job, ...]:
    """What will be read; raises UserError before any row is, when a file is missing, foreign or named twice."""
    source = _find_source(settings.source)
    raws = [find_raw_file(spec) for spec in settings.files]
    jobs = tuple(Job(raw, source.identify(raw)) for raw in raws)
    owners: dict[str, Job] = {}
    for job in jobs:
        other = owners.setdefault(job.identity.stem, job)
        if other is not job:
            raise SettingsError(
                f"data.files: {other.raw.spec} and {job.raw.spec} would both make {job.identity.stem}.h5: "
                "rename one of them"
            )
    return jobs


def ingest_file(job: Job, settings: DataSettings, folder: Path) -> Receipt:
    """The receipt of one file's shard, which is kept when still right and made otherwise."""
    started = time.monotonic()
    sha256 = hash_raw_file(job.raw)
    stem = job.identity.stem
    key = make_key(settings, instrument=job.identity.instrument, input_sha256=sha256, code_sha256=hash_code())
    receipt = find_receipt(folder, stem, key=key)
    if receipt is not None:
        print(f"ingest: {receipt.shard.file} is still right, kept ({receipt.shard.rows:,} rows)", flush=True)
        # The same bytes may lie elsewhere now, or under another name.
        return dataclasses.replace(receipt, input=dataclasses.replace(receipt.input, path=job.raw.spec))
    reading = _find_source(settings.source).read(job.raw, max_rows=settings.max_rows)
    check_rows(job.raw.spec, reading)
    receipt = _write_shard(job, settings, reading, folder, key=key, sha256=sha256)
    write_receipt(folder, stem, receipt)
    counts = f"{receipt.input.rows_kept:,} rows kept, {receipt.input.rows_quarantined:,} quarantined"
    took = format_seconds(time.monotonic() - started)
    print(f"ingest: {job.raw.spec}: {counts} -> {receipt.shard.file} ({took})", flush=True)
    return receipt


def check_rows(spec: str, reading: Reading) -> None:
    """Raise LostRowsError unless rows in = kept + quarantined, InputFileError when none is kept."""
    kept, rejected = len(reading.arrays["time_ns"]), len(reading.rejected)
    if reading.rows_in != kept + rejected:
        raise LostRowsError(
            f"{spec} has {reading.rows_in} rows, but {kept} were kept and {rejected} quarantined: this is a bug"
        )
    if kept == 0:
        line, reason = reading.rejected.select(LINE, REASON).row(0)
        raise InputFileError(
            f"data file {spec}: none of its {reading.rows_in} rows fits (line {line}: {reason}): check data.source"
        )


def _find_source(name: str) -> Source:
    if name not in SOURCES:
        raise SettingsError(f"data.source is {name!r}, expected one of {', '.join(SOURCES)}")
    return SOURCES[name]


def _write_shard(
    job: Job, settings: DataSettings, reading: Reading, folder: Path, *, key: str, sha256: str
) -> Receipt:
    entry = write_shard(
        folder / f"{job.identity.stem}.h5",
        reading.arrays,
        instrument=job.identity.instrument,
        compression=settings.compression,
        chunk_rows=settings.chunk_rows,
        units={column.name: column.unit for column in reading.columns},
    )
    source = InputFile(
        path=job.raw.spec,
        bytes=job.raw.bytes,
        sha256=sha256,
        rows_in=reading.rows_in,
        rows_kept=entry.rows,
        rows_quarantined=len(reading.rejected),
    )
    return Receipt(key, source, entry, reading.columns, list_rows(reading.rejected))


def _publish(settings: DataSettings, receipts: Sequence[Receipt], out: Path) -> ShardManifest:
    manifest = ShardManifest(
        kind="raw",
        dataset=settings.dataset,
        source=settings.source,
        columns=_join_columns(receipts),
        shards=tuple(receipt.shard for receipt in receipts),
        inputs=tuple(receipt.input for receipt in receipts),
        quarantine=write_quarantine(out.parent, {item.input.path: item.quarantined for item in receipts}),
    )
    write_artifact(out, manifest, settings_hash=hash_json(settings))
    kept = sum(item.rows_kept for item in manifest.inputs)
    quarantined = sum(item.rows_quarantined for item in manifest.inputs)
    print(f"ingest: {len(receipts)} files, {kept:,} rows kept, {quarantined:,} quarantined -> {out}", flush=True)
    return manifest


def _join_columns(receipts: Sequence[Receipt]) -> tuple[Column, ...]:
    """Every column that a shard has, in order of first appearance; a shard need not have all of them."""
    return tuple(dict.fromkeys(column for receipt in receipts for column in receipt.columns))
