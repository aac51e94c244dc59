"""The stage: a dataset's shards to one feature shard and its manifest."""

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from windtunnel.artifacts import hash_json
from windtunnel.errors import ArtifactError, InputFileError, SettingsError
from windtunnel.featurize.daily import build_daily, make_series
from windtunnel.featurize.expand import Features, expand_table
from windtunnel.featurize.quotes import COLUMNS, build_quotes
from windtunnel.featurize.signals import Table
from windtunnel.kernels.backend import choose_backend
from windtunnel.records.data import ROW_FACTS, Column, ShardEntry, ShardManifest
from windtunnel.settings.features import FeatureSettings
from windtunnel.settings.kernels import Backend
from windtunnel.shards.manifest import check_shard, manifest_sha256, read_manifest, write_manifest
from windtunnel.shards.reader import read_shard
from windtunnel.shards.writer import write_shard
from windtunnel.units import format_seconds

COMPRESSION = "zstd"
CHUNK_ROWS = 4096


def run_featurize(settings: FeatureSettings, *, shards: Path, out: Path, backend: Backend = "auto") -> ShardManifest:
    """Compute the features of the dataset whose manifest is `shards`; publish their shard beside `out`, then `out`.

    Raises UserError when the dataset has no shards, not the reference, or columns that the recipe cannot use, and
    ClusterError for a backend of the kernels that is not installed.
    """
    started = time.monotonic()
    kernels = choose_backend(backend)
    raw = read_manifest(shards)
    check_request(settings, raw, shards)
    print(f"featurize: {raw.dataset}: recipe {settings.recipe}, reference {settings.reference}", flush=True)
    table = read_table(settings, raw, shards.parent)
    print(f"featurize: {len(table.time_ns):,} rows, {len(table.signals)} signals", flush=True)
    features = expand_table(table, settings, backend=kernels)
    entry = _write_features(features, settings, out.parent)
    manifest = ShardManifest(
        kind="features",
        dataset=raw.dataset,
        source=settings.recipe,
        columns=(Column("time_ns", "int64", "ns since 1970 UTC"), Column("price", "float64"), *features.columns),
        shards=(entry,),
        inputs=(),
        quarantine="",
        parent_sha256=manifest_sha256(raw),
        kernels=kernels,
    )
    written = write_manifest(out, manifest, settings_hash=hash_json(settings))
    rows, columns = features.features_tc.shape
    took = format_seconds(time.monotonic() - started)
    print(f"featurize: {rows:,} rows x {columns} features by {kernels} -> {out} ({took})", flush=True)
    return written


def check_request(settings: FeatureSettings, raw: ShardManifest, where: Path) -> None:
    """Raise UserError when `settings` cannot be met by the dataset of `raw`, before any shard is read."""
    if raw.kind != "raw":
        raise InputFileError(f"{where} is a manifest of {raw.kind}, expected raw shards: give the one of ingest")
    if not raw.shards:
        raise InputFileError(f"{where} lists no shards: run ingest with at least one data file")
    known = sorted({entry.instrument for entry in raw.shards})
    if settings.reference not in known:
        raise SettingsError(
            f"features.reference={settings.reference!r} is not in dataset {raw.dataset!r}: expected one of "
            f"{', '.join(known)}"
        )
    if len(set(settings.windows)) < len(settings.windows):
        raise SettingsError(f"features.windows={list(settings.windows)}: expected each length once")
    shortest = min(settings.windows)
    if shortest < settings.min_periods:
        raise SettingsError(
            f"features.windows has {shortest}, expected at least features.min_periods={settings.min_periods}: "
            "lengthen the window or lower min_periods"
        )


def read_table(settings: FeatureSettings, raw: ShardManifest, folder: Path) -> Table:
    """The recipe's signals from the shards in `folder`, each held against the manifest first."""
    if settings.recipe == "quotes":
        return _read_quotes(settings.reference, raw, folder)
    parts = {name: _find_entries(name, raw) for name in dict.fromkeys(entry.instrument for entry in raw.shards)}
    twice = next(
        (name for name, entries in parts.items() if len({e.input_sha256 or e.file for e in entries}) > 1), None
    )
    if twice is not None:
        raise InputFileError(f"dataset {raw.dataset!r} has {twice!r} in several files, expected one: join its files")
    series = {name: make_series(name, _read_file(entries, folder)) for name, entries in parts.items()}
    reference = series.pop(settings.reference)
    return build_daily(reference, tuple(series.values()))


def _read_quotes(reference: str, raw: ShardManifest, folder: Path) -> Table:
    by_file: dict[str, list[ShardEntry]] = {}
    for entry in _find_entries(reference, raw):
        by_file.setdefault(entry.input_sha256 or entry.file, []).append(entry)
    files = sorted(by_file.values(), key=lambda entries: min(entry.first_ns for entry in entries))
    for earlier, later in pairwise(files):
        if min(entry.first_ns for entry in later) < max(entry.last_ns for entry in earlier):
            raise InputFileError(
                f"shards {earlier[0].file} and {later[0].file} of {reference!r} overlap in time: take one out of "
                "data.files"
            )
    parts = [_read_file(entries, folder) for entries in files]
    for entries, part in zip(files, parts, strict=True):
        missing = [name for name in COLUMNS if name not in part]
        if missing:
            raise InputFileError(
                f"shard {entries[0].file} of {reference!r} has no column {', '.join(missing)}: recipe 'quotes' needs "
                f"{', '.join(COLUMNS)}; choose a reference with quotes, or recipe 'daily'"
            )
    return build_quotes(reference, {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def _find_entries(instrument: str, raw: ShardManifest) -> list[ShardEntry]:
    return [entry for entry in raw.shards if entry.instrument == instrument]


def _read_file(entries: Sequence[ShardEntry], folder: Path) -> dict[str, np.ndarray]:
    """All shards of one raw file, in order of time; rows of equal time keep the file's order."""
    parts = [_read(entry, folder) for entry in entries]
    if len(parts) == 1:
        return parts[0]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["time_ns"], kind="stable")
    return {name: array[order] for name, array in joined.items()}


def _read(entry: ShardEntry, folder: Path) -> dict[str, np.ndarray]:
    reason = check_shard(folder, entry)
    if reason:
        raise ArtifactError(f"{reason}: run ingest again")
    return {name: array for name, array in read_shard(folder / entry.file).items() if name not in ROW_FACTS}


def _write_features(features: Features, settings: FeatureSettings, folder: Path) -> ShardEntry:
    return write_shard(
        folder / f"{settings.reference}.h5",
        {"time_ns": features.time_ns, "price": features.price, "features": features.features_tc},
        instrument=settings.reference,
        compression=COMPRESSION,
        chunk_rows=CHUNK_ROWS,
    )
