"""Whether a checkpoint is what was published, and which one to go on from. No torch, no pickle."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from windtunnel.checkpoints.blocks import check_blocks
from windtunnel.checkpoints.manifest import MANIFEST, CheckpointManifest, list_checkpoints, read_manifest
from windtunnel.errors import CheckpointError

_READERS = 4
"""Files read at a time; hashing holds no interpreter lock."""


@dataclass(frozen=True)
class Choice:
    """The newest checkpoint that verified, or none where there are none, and the newer ones passed over."""

    path: Path | None
    manifest: CheckpointManifest | None
    skipped: tuple[str, ...]
    """A line each: which, and why."""
    passed_over: tuple[Path, ...] = ()


def verify_checkpoint(path: Path) -> list[str]:
    """Why the checkpoint at `path` is not what was published, a sentence each; empty when every byte is right."""
    return _read_verified(path)[1]


def choose_checkpoint(checkpoints_dir: Path) -> Choice:
    """The newest checkpoint that verifies; raises CheckpointError when there are some and none does."""
    skipped: list[str] = []
    passed_over: list[Path] = []
    for path in list_checkpoints(checkpoints_dir):
        manifest, reasons = _read_verified(path)
        if reasons:  # a read may fail, on a network's file system, where the next one does not
            manifest, reasons = _read_verified(path)
        if not reasons:
            return Choice(path, manifest, tuple(skipped), tuple(passed_over))
        passed_over.append(path)
        skipped.append(f"{path.name}: {'; '.join(reasons)}")
    if skipped:
        raise CheckpointError(
            f"none of the {len(skipped)} checkpoints in {checkpoints_dir} verifies: {' | '.join(skipped)}: "
            "restore one, or remove the folder to train from the start"
        )
    return Choice(None, None, ())


def _read_verified(path: Path) -> tuple[CheckpointManifest | None, list[str]]:
    try:
        manifest = read_manifest(path)
        strangers = _find_strangers(path, manifest)
    except (CheckpointError, OSError) as error:
        return None, [str(error)]
    with ThreadPoolExecutor(_READERS) as pool:
        reasons = pool.map(lambda item: check_blocks(path, item), manifest.files)
        return manifest, [*filter(None, reasons), *strangers]


def _find_strangers(path: Path, manifest: CheckpointManifest) -> list[str]:
    known = {MANIFEST, *(item.file for item in manifest.files)}
    return [
        f"{path.name}/{name} is not in its manifest"
        for name in sorted(each.name for each in path.iterdir())
        if name not in known
    ]
