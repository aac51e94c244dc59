"""Shards that are bad are made again from their raw files: only those, and byte for byte as the manifest says."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from windtunnel.artifacts import fsync_dir
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.ingest.files import hash_raw_file
from windtunnel.ingest.plan import find_source, plan_jobs
from windtunnel.ingest.receipt import Receipt, name_shard
from windtunnel.ingest.sources.base import Run
from windtunnel.ingest.work import Job, make_pieces
from windtunnel.records.data import ShardEntry, ShardManifest
from windtunnel.settings.base import parse_settings
from windtunnel.settings.data import DataSettings


def repair_shards(manifest: ShardManifest, files: Sequence[str], *, folder: Path) -> list[str]:
    """Make the shards `files` in `folder` again; returns their names.

    Raises InputFileError when a raw file is gone or is no longer the one that was read, ArtifactError when what is
    made differs from the manifest. Shards that are whole are not touched.
    """
    if manifest.kind != "raw" or not manifest.settings:
        raise ArtifactError(
            f"{folder} holds {manifest.kind} shards that are not made from raw files here: remove its manifest, and "
            "run the command that made it again"
        )
    settings = parse_settings(DataSettings, manifest.settings, where=str(folder))
    entries = {entry.file: entry for entry in manifest.shards}
    jobs = [job for job in plan_jobs(settings, find_source(settings)) if _is_wanted(job, files)]
    for job in jobs:
        _check_raw(job, manifest)
    repaired = []
    for job in jobs:
        wanted = [entries[file] for file in files if _piece_of(job, file) is not None]
        repaired += _repair(job, wanted, settings, folder)
    return repaired


def _repair(job: Job, wanted: Sequence[ShardEntry], settings: DataSettings, folder: Path) -> list[str]:
    source = find_source(settings)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".repair-") as name:
        place = Path(name)
        for entry in wanted:
            piece = _piece_of(job, entry.file)
            assert piece is not None, f"{entry.file} is not of {job.part.stem}"
            run = Run(piece, piece + 1, settings.shard_text)
            if settings.max_rows is not None:
                run = Run(piece_bytes=settings.shard_text, max_rows=settings.max_rows)
            made = make_pieces(job, run, settings, source=source, folder=place)
            _publish(entry, made, place, folder)
    return [entry.file for entry in wanted]


def _publish(entry: ShardEntry, made: Sequence[Receipt], place: Path, folder: Path) -> None:
    found = next((receipt.shard for receipt in made if receipt.shard and receipt.shard.file == entry.file), None)
    if found is None or found.sha256 != entry.sha256:
        raise ArtifactError(
            f"{folder / entry.file} made again is not what its manifest says: another version of this program or of "
            "HDF5 made it: run ingest again, which makes all shards alike"
        )
    (place / entry.file).rename(folder / entry.file)
    fsync_dir(folder)


def _check_raw(job: Job, manifest: ShardManifest) -> None:
    wanted = {item.sha256 for item in manifest.inputs if item.path == job.raw.spec}
    if hash_raw_file(job.raw) not in wanted:
        raise InputFileError(
            f"data file {job.raw.spec} is no longer the one that the shards are from: bring it back, or run ingest "
            "again"
        )


def _is_wanted(job: Job, files: Sequence[str]) -> bool:
    return any(_piece_of(job, file) is not None for file in files)


def _piece_of(job: Job, file: str) -> int | None:
    stem, _, number = file.removesuffix(".h5").partition("-")
    piece = int(number) if number.isdecimal() else 0
    return piece if stem == job.part.stem and name_shard(stem, piece) == file else None
