"""The checkpoint format, without torch: a folder of files under a manifest that accounts for every byte.

A checkpoint is written as `.tmp-*`, gets its manifest last, and is renamed to `step-00000100`: a folder of
that name is whole, or was damaged afterwards, which `verify_checkpoint` finds.
"""

import re
import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from windtunnel.artifacts import (
    check_file,
    fsync_dir,
    fsync_file,
    hash_file,
    hash_json,
    read_artifact,
    write_artifact,
)
from windtunnel.errors import ArtifactError, CheckpointError, InputFileError

MANIFEST = "MANIFEST.json"
_NAME = re.compile(r"step-(\d{8,})")
_TEMPORARY = ".tmp-"


@dataclass(frozen=True)
class CheckpointFile:
    """A file of a checkpoint, named relative to its folder."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class CheckpointManifest:
    """`MANIFEST.json` of a checkpoint: what it continues, and all its files."""

    SCHEMA: ClassVar[str] = "windtunnel.checkpoint/1"

    trial_id: str
    step: int
    world_size: int
    settings_sha256: str
    """Hash of the trial's settings."""
    source_sha256: str
    """Hash of the code that trained it."""
    files: tuple[CheckpointFile, ...]
    sha256: str = ""
    """Hash of all fields above, so that the manifest vouches for itself too."""

    @property
    def bytes(self) -> int:
        """Size of the files that it lists."""
        return sum(item.bytes for item in self.files)


@dataclass(frozen=True)
class Choice:
    """The newest checkpoint that verified, or none where there are none, and the newer ones passed over."""

    path: Path | None
    manifest: CheckpointManifest | None
    skipped: tuple[str, ...]
    """A line each: which, and why."""


def checkpoint_name(step: int) -> str:
    """Folder of the checkpoint after `step` optimizer steps: `step-00000100`."""
    return f"step-{step:08d}"


def start_checkpoint(checkpoints_dir: Path) -> Path:
    """A new, empty temporary folder to write a checkpoint's files into."""
    path = checkpoints_dir / f"{_TEMPORARY}{uuid.uuid4().hex[:12]}"
    path.mkdir(parents=True)
    return path


def publish_checkpoint(temporary: Path, manifest: CheckpointManifest) -> Path:
    """List and hash the files in `temporary`, write the manifest, make all durable, and rename it into place.

    A published checkpoint of the same step gives way: one that did not verify is trained again.
    """
    names = sorted(path.name for path in temporary.iterdir() if path.is_file())
    files = tuple(
        CheckpointFile(name, (temporary / name).stat().st_size, hash_file(temporary / name)) for name in names
    )
    for name in names:
        fsync_file(temporary / name)
    complete = replace(manifest, files=files, sha256="")
    write_artifact(temporary / MANIFEST, replace(complete, sha256=hash_json(complete)))
    final = temporary.parent / checkpoint_name(manifest.step)
    if final.exists():
        remove_checkpoint(final)
    temporary.rename(final)
    fsync_dir(final.parent)
    return final


def verify_checkpoint(path: Path) -> list[str]:
    """Why the checkpoint at `path` is not what was published, a sentence each; empty when every byte is right."""
    try:
        manifest = read_manifest(path)
    except CheckpointError as error:
        return [str(error)]
    reasons = [_check_file(path, item) for item in manifest.files]
    return [reason for reason in reasons if reason]


def read_manifest(path: Path) -> CheckpointManifest:
    """The manifest of the checkpoint at `path`; raises CheckpointError when it is missing, damaged or another's."""
    try:
        manifest = read_artifact(path / MANIFEST, CheckpointManifest)
    except (ArtifactError, InputFileError) as error:
        raise CheckpointError(f"{path.name}: no whole {MANIFEST}: {error}") from error
    if manifest.sha256 != hash_json(replace(manifest, sha256="")):
        raise CheckpointError(f"{path.name}: {MANIFEST} was altered: its content does not match its own hash")
    if path.name != checkpoint_name(manifest.step):
        raise CheckpointError(f"{path.name}: its manifest is of step {manifest.step}; the folder was renamed")
    return manifest


def list_checkpoints(checkpoints_dir: Path) -> list[Path]:
    """Published checkpoints, newest first, verified or not; none where the folder does not exist."""
    if not checkpoints_dir.is_dir():
        return []
    found = [(int(match[1]), path) for path in checkpoints_dir.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def choose_checkpoint(checkpoints_dir: Path) -> Choice:
    """The newest checkpoint that verifies; raises CheckpointError when there are some and none does."""
    skipped: list[str] = []
    for path in list_checkpoints(checkpoints_dir):
        reasons = verify_checkpoint(path)
        if not reasons:
            return Choice(path, read_manifest(path), tuple(skipped))
        skipped.append(f"{path.name}: {'; '.join(reasons)}")
    if skipped:
        raise CheckpointError(
            f"none of the {len(skipped)} checkpoints in {checkpoints_dir} verifies: {' | '.join(skipped)}: "
            "restore one, or remove the folder to train from the start"
        )
    return Choice(None, None, ())


def keep_newest(checkpoints_dir: Path, count: int) -> list[Path]:
    """Remove all but the `count` newest checkpoints, and return what was removed.

    Nothing is removed unless the newest verifies: an older one may be all that is left to resume from.
    """
    found = list_checkpoints(checkpoints_dir)
    if len(found) <= count or verify_checkpoint(found[0]):
        return []
    for path in found[count:]:
        remove_checkpoint(path)
    return found[count:]


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint; cut off midway it is a temporary folder, never a damaged checkpoint."""
    doomed = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex[:12]}")
    path.rename(doomed)
    shutil.rmtree(doomed)


def remove_leftovers(checkpoints_dir: Path) -> None:
    """Remove temporary folders of writers that were cut off; only the trial's one live attempt may call it."""
    if checkpoints_dir.is_dir():
        for path in checkpoints_dir.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(path)


def _check_file(folder: Path, item: CheckpointFile) -> str:
    name = f"{folder.name}/{item.file}"
    return check_file(folder / item.file, size_bytes=item.bytes, sha256=item.sha256, name=name)
