"""Which checkpoints are kept: the newest, every so many steps one, and the best; the rest go once it is safe."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import NAME, list_checkpoints, read_manifest, step_of
from windtunnel.checkpoints.publish import BAD, remove_checkpoint
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.errors import CheckpointError

_OPEN = Fence()


@dataclass(frozen=True)
class Retention:
    """What is kept beyond what is needed to go on."""

    newest: int = 2
    every_steps: int = 0
    """Keep those of whole multiples of so many steps; 0 for none."""
    best: int = 0
    """Keep so many of the lowest training loss."""


@dataclass(frozen=True)
class Kept:
    """A published checkpoint, as retention sees it."""

    step: int
    train_loss: float | None


def choose_kept(found: Sequence[Kept], retention: Retention) -> frozenset[int]:
    """Steps of the checkpoints to keep."""
    steps = sorted((item.step for item in found), reverse=True)
    kept = set(steps[: retention.newest])
    if retention.every_steps:
        kept |= {step for step in steps if step % retention.every_steps == 0}
    rated = [(item.train_loss, -item.step) for item in found if item.train_loss is not None]
    return frozenset(kept | {-negated for _, negated in sorted(rated)[: retention.best]})


def let_go(checkpoints_dir: Path, retention: Retention, *, fence: Fence = _OPEN) -> list[Path]:
    """Remove what is not kept, and return it.

    Nothing is removed unless the newest verifies: an older one may be all that is left to resume from. Raises
    FencedError when another attempt has the trial now.
    """
    found = list_checkpoints(checkpoints_dir)
    newest = step_of(found[0]) if found else -1
    aside = [path for path in checkpoints_dir.glob(f"{BAD}*") if NAME.search(path.name) and step_of(path) <= newest]
    kept = choose_kept([_read_kept(path) for path in found], retention)
    doomed = [path for path in found if step_of(path) not in kept]
    if not (doomed or aside) or verify_checkpoint(found[0]):
        return []
    for path in doomed:
        fence.check()
        remove_checkpoint(path)
    for path in aside:
        fence.check()
        _remove(path)
    return doomed


def _remove(path: Path) -> None:
    """Whatever lies there under a checkpoint's name; what a link points to is nobody's."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read_kept(path: Path) -> Kept:
    try:
        return Kept(step_of(path), read_manifest(path).train_loss)
    except CheckpointError:
        return Kept(step_of(path), None)
