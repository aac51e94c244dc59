"""Checkpoints for tests, published as training publishes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from windtunnel.checkpoints.blocks import hash_blocks
from windtunnel.checkpoints.manifest import CheckpointManifest
from windtunnel.checkpoints.publish import publish_checkpoint, start_checkpoint


def publish_files(
    checkpoints_dir: Path, step: int, files: Mapping[str, bytes], *, trial_id: str = "trial", **more: Any
) -> Path:
    """A checkpoint of files that hold no tensors."""
    temporary = start_checkpoint(checkpoints_dir, step=step)
    for name, data in files.items():
        (temporary / name).write_bytes(data)
    manifest = CheckpointManifest(trial_id, step, 1, "settings", "source", **more)
    return publish_checkpoint(temporary, manifest, [hash_blocks(temporary / name) for name in files])


def publish_tensors(checkpoints_dir: Path, step: int, tensors: Mapping[str, Any], *, trial_id: str = "trial") -> Path:
    """A checkpoint of one rank."""
    from windtunnel.checkpoints.dcp import save_tensors

    temporary = start_checkpoint(checkpoints_dir, step=step)
    manifest = CheckpointManifest(trial_id, step, 1, "settings", "source")
    published: list[Path] = []
    save_tensors(temporary, tensors, lambda files: published.append(publish_checkpoint(temporary, manifest, files)))
    return published[0]
