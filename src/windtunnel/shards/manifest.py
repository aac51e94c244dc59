"""A manifest of shards: read, hashed by content, and held against the files that it names. No HDF5 here."""

import dataclasses
from pathlib import Path

from windtunnel.artifacts import check_file, hash_json, read_artifact
from windtunnel.records.data import ShardEntry, ShardManifest


def read_manifest(path: Path) -> ShardManifest:
    """The manifest at `path`; raises InputFileError when it is missing, ArtifactError when it is not one."""
    return read_artifact(path, ShardManifest)


def manifest_sha256(manifest: ShardManifest) -> str:
    """SHA-256 in hex of what the shards hold and were made from, wherever the raw files lay."""
    inputs = tuple(dataclasses.replace(item, path="") for item in manifest.inputs)
    return hash_json(dataclasses.replace(manifest, inputs=inputs))


def check_shard(folder: Path, entry: ShardEntry) -> str:
    """Why the file of `entry` in `folder` is not what was published; empty when it is."""
    path = folder / entry.file
    return check_file(path, size_bytes=entry.bytes, sha256=entry.sha256, name=str(path))
