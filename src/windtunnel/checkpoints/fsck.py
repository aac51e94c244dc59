"""Checkpoints looked at from outside, for people: what there is, whether it is whole, and what damage touches.

Reads no pickle and needs no torch, so that it runs where the files are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.checkpoints.blocks import BLOCK_BYTES, find_bad_blocks
from windtunnel.checkpoints.manifest import (
    MANIFEST,
    NAME,
    CheckpointIndex,
    CheckpointManifest,
    list_checkpoints,
    read_index,
    read_manifest,
    step_of,
)
from windtunnel.checkpoints.publish import BAD
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.errors import CheckpointError, InputFileError


@dataclass(frozen=True)
class Found:
    """A checkpoint on disk. Without a readable manifest it has no size and no origin."""

    path: str
    step: int
    written_at: float
    """Seconds since 1970 UTC."""
    bytes: int | None = None
    generation: int | None = None
    world_size: int | None = None
    train_loss: float | None = None
    reasons: tuple[str, ...] = ()
    """Why it does not verify, as far as it was read."""


@dataclass(frozen=True)
class Damage:
    """Bytes of a file that are not what was written, and the tensors that lie there."""

    file: str
    first_byte: int
    last_byte: int
    tensors: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """One checkpoint, in full."""

    manifest: CheckpointManifest | None
    tensors: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Name, dtype and shape, by name."""
    reasons: tuple[str, ...]
    damages: tuple[Damage, ...]


def find_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints of a trial's folder, of its `checkpoints/`, or the one that `folder` is; newest first.

    Raises InputFileError where there is none.
    """
    if NAME.fullmatch(folder.name) and folder.is_dir():
        return [folder]
    for place in (folder / "checkpoints", folder):
        found = list_checkpoints(place)
        if found:
            return found
    raise InputFileError(f"{folder} holds no checkpoints: name a trial's folder, or a folder step-00000100 of it")


def list_aside(folder: Path) -> list[Path]:
    """Those that a resume set aside because they did not verify."""
    return sorted(path for place in (folder / "checkpoints", folder) for path in place.glob(f"{BAD}*"))


def describe_checkpoint(path: Path, *, read: bool) -> Found:
    """A checkpoint by its manifest, or with `read` by all its bytes."""
    step = step_of(path)
    written_at = (path / MANIFEST if (path / MANIFEST).exists() else path).stat().st_mtime
    reasons = tuple(verify_checkpoint(path)) if read else ()
    try:
        manifest = read_manifest(path)
    except CheckpointError as error:
        return Found(str(path), step, written_at, reasons=reasons or (str(error),))
    return Found(
        path=str(path),
        step=step,
        written_at=written_at,
        bytes=manifest.bytes,
        generation=manifest.generation,
        world_size=manifest.world_size,
        train_loss=manifest.train_loss,
        reasons=reasons,
    )


def explain_checkpoint(path: Path) -> Explanation:
    """What a checkpoint holds, and what of it is damaged."""
    reasons = tuple(verify_checkpoint(path))
    try:
        manifest = read_manifest(path)
    except CheckpointError:
        return Explanation(None, (), reasons, ())
    try:
        index = read_index(path)
    except CheckpointError:
        return Explanation(manifest, (), reasons, _find_damages(path, manifest, None) if reasons else ())
    tensors = tuple((name, held.dtype, tuple(held.shape)) for name, held in sorted(index.tensors.items()))
    return Explanation(manifest, tensors, reasons, _find_damages(path, manifest, index) if reasons else ())


def find_resumable(found: Sequence[Found]) -> Found | None:
    """The newest that verifies: where a resume would go on."""
    return next((item for item in found if not item.reasons), None)


def _find_damages(path: Path, manifest: CheckpointManifest, index: CheckpointIndex | None) -> tuple[Damage, ...]:
    damages = []
    for item in manifest.files:
        for number in find_bad_blocks(path, item):
            first, last = number * BLOCK_BYTES, min((number + 1) * BLOCK_BYTES, item.bytes) - 1
            damages.append(Damage(item.file, first, last, _name_tensors(index, item.file, first, last)))
    return tuple(damages)


def _name_tensors(index: CheckpointIndex | None, file: str, first: int, last: int) -> tuple[str, ...]:
    if index is None:
        return ()
    return tuple(
        name
        for name, held in sorted(index.tensors.items())
        if any(
            chunk.file == file and chunk.bytes and chunk.at <= last and chunk.at + chunk.bytes > first
            for chunk in held.chunks
        )
    )
