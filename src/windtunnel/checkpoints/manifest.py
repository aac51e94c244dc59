"""What a checkpoint says of itself: `MANIFEST.json`, which accounts for every byte, and `INDEX.json`, its tensors.

The form on disk is the contract (docs/checkpoints.md): both are JSON, and read without torch.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from windtunnel.artifacts import read_artifact, render_artifact, write_atomic
from windtunnel.checkpoints.blocks import BlockFile
from windtunnel.errors import ArtifactError, CheckpointError, InputFileError

MANIFEST = "MANIFEST.json"
INDEX = "INDEX.json"
NAME = re.compile(r"step-(\d{8,})")
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_UNSIGNED = b'"sha256": ""'


@dataclass(frozen=True)
class CheckpointManifest:
    """`MANIFEST.json` of a checkpoint: what it continues, and all its files."""

    SCHEMA: ClassVar[str] = "windtunnel.checkpoint/2"

    trial_id: str
    step: int
    world_size: int
    settings_sha256: str
    """Hash of the trial's settings."""
    source_sha256: str
    """Hash of the code that trained it."""
    generation: int = 0
    """Of the trial's lease under which it was written; 0 without one."""
    layout: Mapping[str, int] = field(default_factory=dict)
    """Size of each axis of the mesh."""
    train_loss: float | None = None
    """Of the newest line of metrics.jsonl at this step; none before the first."""
    files: tuple[BlockFile, ...] = ()
    sha256: str = ""
    """Hash of the manifest's own file with nothing in this field's place: not a byte of it may change unseen."""

    @property
    def bytes(self) -> int:
        """Size of the files that it lists."""
        return sum(item.bytes for item in self.files)


@dataclass(frozen=True)
class Chunk:
    """A rectangle of a tensor: where it lies in the tensor, and its bytes in a file, row-major."""

    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    at: int
    """First byte in the file."""
    bytes: int


@dataclass(frozen=True)
class TensorRecord:
    """A whole tensor, whichever ranks wrote its chunks."""

    dtype: str
    """torch's name: `float32`."""
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class CheckpointIndex:
    """`INDEX.json` of a checkpoint: its tensors by name."""

    SCHEMA: ClassVar[str] = "windtunnel.checkpoint_index/1"

    tensors: Mapping[str, TensorRecord]


def checkpoint_name(step: int) -> str:
    """Folder of the checkpoint after `step` optimizer steps: `step-00000100`."""
    return f"step-{step:08d}"


def step_of(path: Path) -> int:
    """The step in the name of a checkpoint, also of one that was set aside."""
    match = NAME.search(path.name)
    assert match is not None, f"{path} is not named as a checkpoint"
    return int(match[1])


def write_manifest(folder: Path, manifest: CheckpointManifest) -> CheckpointManifest:
    """Write the manifest, with a hash of itself, into the folder that it accounts for."""
    unsigned = render_artifact(replace(manifest, sha256="")).encode()
    digest = hashlib.sha256(unsigned).hexdigest()
    write_atomic(folder / MANIFEST, unsigned.replace(_UNSIGNED, _sign(digest)))
    return replace(manifest, sha256=digest)


def read_manifest(path: Path) -> CheckpointManifest:
    """The manifest of the checkpoint at `path`; raises CheckpointError when it is missing, damaged or another's."""
    try:
        manifest = read_artifact(path / MANIFEST, CheckpointManifest)
        signed = (path / MANIFEST).read_bytes()
    except InputFileError as error:
        raise CheckpointError(f"{path.name}: no whole {MANIFEST}: it is missing, or cannot be read") from error
    except (ArtifactError, OSError) as error:
        why = str(error).removeprefix(f"{path / MANIFEST} ").partition(": rm ")[0]
        raise CheckpointError(f"{path.name}: no whole {MANIFEST}: it {why}") from error
    unsigned = signed.replace(_sign(manifest.sha256), _UNSIGNED)
    if manifest.sha256 != hashlib.sha256(unsigned).hexdigest():
        raise CheckpointError(f"{path.name}: {MANIFEST} was altered: its content does not match its own hash")
    if path.name != checkpoint_name(manifest.step):
        raise CheckpointError(f"{path.name}: its manifest is of step {manifest.step}; the folder was renamed")
    _check_files(path, manifest)
    return manifest


def _check_files(path: Path, manifest: CheckpointManifest) -> None:
    names = [item.file for item in manifest.files]
    odd = next((name for name in names if not _PLAIN.fullmatch(name) or names.count(name) > 1), None)
    if odd is not None:
        raise CheckpointError(f"{path.name}: its manifest names {odd!r}, which is not one file of its own folder")


def read_index(path: Path) -> CheckpointIndex:
    """The index of the checkpoint at `path`; raises CheckpointError. Verify the checkpoint first."""
    try:
        return read_artifact(path / INDEX, CheckpointIndex)
    except (ArtifactError, InputFileError) as error:
        raise CheckpointError(f"cannot read the index of {path}: {error}") from error


def list_checkpoints(checkpoints_dir: Path) -> list[Path]:
    """Published checkpoints, newest first, verified or not; none where the folder does not exist."""
    if not checkpoints_dir.is_dir():
        return []
    found = [(int(match[1]), path) for path in checkpoints_dir.iterdir() if (match := NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def find_newest_step(checkpoints_dir: Path) -> int | None:
    """Step of the newest published checkpoint, verified or not; None without one."""
    found = list_checkpoints(checkpoints_dir)
    return step_of(found[0]) if found else None


def _sign(digest: str) -> bytes:
    return _UNSIGNED.replace(b'""', f'"{digest}"'.encode())
