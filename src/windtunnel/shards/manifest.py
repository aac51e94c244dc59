"""A manifest of shards: read, hashed by content, and held against the files that it names. No HDF5 here."""

import dataclasses
from pathlib import Path

from windtunnel.artifacts import hash_file, hash_json, read_artifact
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
    try:
        found_bytes = path.stat().st_size
        if found_bytes != entry.bytes:
            return f"{path} has {found_bytes} bytes, its manifest says {entry.bytes}"
        found = hash_file(path)
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    if found != entry.sha256:
        return f"{path} has SHA-256 {found[:12]}..., its manifest says {entry.sha256[:12]}..."
    return ""
