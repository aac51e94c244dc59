"""A manifest of shards: read, hashed by content, and held against the files that it names. No HDF5 here."""

import dataclasses
from pathlib import Path

from windtunnel.artifacts import check_file, hash_json, is_signed_by, read_artifact, write_signed
from windtunnel.errors import ArtifactError
from windtunnel.records.data import ShardEntry, ShardManifest

MANIFEST = "MANIFEST.json"


def write_manifest(path: Path, manifest: ShardManifest, *, settings_hash: str = "") -> ShardManifest:
    """Publish the manifest at `path`, signed with a hash of itself; returns it as it is read back."""
    write_signed(path, dataclasses.replace(manifest, sha256=""), settings_hash=settings_hash)
    return read_manifest(path)


def read_manifest(path: Path) -> ShardManifest:
    """The manifest at `path`; raises InputFileError when it is missing, ArtifactError when it is none, or altered."""
    manifest = read_artifact(path, ShardManifest)
    if manifest.sha256 and not is_signed_by(path, manifest.sha256):
        raise ArtifactError(
            f"{path} was altered: its content does not match its own hash: run the stage that makes it again"
        )
    return manifest


def manifest_sha256(manifest: ShardManifest) -> str:
    """SHA-256 in hex of what the shards hold and were made from, wherever the raw files lay."""
    inputs = tuple(dataclasses.replace(item, path="") for item in manifest.inputs)
    return hash_json(dataclasses.replace(manifest, inputs=inputs, settings={}, quarantine_sha256="", sha256=""))


def check_shard(folder: Path, entry: ShardEntry) -> str:
    """Why the file of `entry` in `folder` is not what was published; empty when it is."""
    path = folder / entry.file
    return check_file(path, size_bytes=entry.bytes, sha256=entry.sha256, name=str(path))
