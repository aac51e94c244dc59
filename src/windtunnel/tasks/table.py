"""A dataset's feature shards as one table in time: a price and the features beside it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError
from windtunnel.records.data import ShardManifest
from windtunnel.shards.manifest import read_manifest
from windtunnel.shards.reader import read_shard

_KEYS = 2  # `time_ns` and `price` stand before the features in a feature manifest's columns


def read_table(manifest_path: Path) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Price (T,) and features (T, C) of all shards in order of time; raises ArtifactError where they differ."""
    manifest = read_feature_manifest(manifest_path)
    entries = sorted(manifest.shards, key=lambda entry: (entry.first_ns, entry.file))
    parts = [read_shard(manifest_path.parent / entry.file, ("price", "features")) for entry in entries]
    price, features_tc = (_join([part[name] for part in parts]) for name in ("price", "features"))
    expected = len(manifest.columns) - _KEYS
    if features_tc.ndim != 2 or features_tc.shape[1] != expected:
        raise ArtifactError(f"{manifest_path} names {expected} features, its shards hold {features_tc.shape[1:]}")
    return price, features_tc


def count_features(manifest_path: Path) -> int:
    """Channels of the feature shards, from their manifest alone."""
    return len(read_feature_manifest(manifest_path).columns) - _KEYS


def read_feature_manifest(manifest_path: Path) -> ShardManifest:
    """The manifest; raises ArtifactError unless it lists feature shards."""
    manifest = read_manifest(manifest_path)
    if manifest.kind != "features" or not manifest.shards:
        raise ArtifactError(
            f"{manifest_path} lists {len(manifest.shards)} {manifest.kind} shards, expected features: run featurize"
        )
    return manifest


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
