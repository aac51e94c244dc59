"""How a checkpoint gets its name, and how old ones go: nobody ever sees a part of one, and no stale writer's.

It is written as `.tmp-<step>-<generation>-<uuid>`, gets its manifest last, and is renamed to `step-00000100`.
"""

import errno
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.artifacts import fsync_dir
from windtunnel.checkpoints.blocks import BlockFile
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest, checkpoint_name, write_manifest
from windtunnel.errors import FencedError

_OPEN = Fence()
_TEMPORARY = ".tmp-"
_DEAD = ".dead-"
BAD = ".bad-"
"""Begins the name of a checkpoint that was set aside."""


def start_checkpoint(checkpoints_dir: Path, *, step: int, generation: int = 0) -> Path:
    """A new, empty temporary folder to write a checkpoint's files into."""
    path = checkpoints_dir / f"{_TEMPORARY}{step}-{generation}-{uuid.uuid4().hex[:12]}"
    path.mkdir(parents=True)
    return path


def publish_checkpoint(
    temporary: Path, manifest: CheckpointManifest, files: Sequence[BlockFile], *, fence: Fence = _OPEN
) -> Path:
    """Write the manifest of `files`, which are durable, and rename the folder into place.

    Raises FencedError when another attempt has the trial now; then nothing is published, and nothing of that one's
    is touched.
    """
    complete = replace(manifest, generation=fence.generation, files=tuple(sorted(files, key=lambda item: item.file)))
    write_manifest(temporary, complete)
    fence.check()
    final = temporary.parent / checkpoint_name(manifest.step)
    try:
        temporary.rename(final)
    except FileNotFoundError as error:
        raise FencedError(f"{temporary} was taken away by the attempt that has the trial now") from error
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise FencedError(f"{final} is there already: another attempt has the trial now") from error
    fsync_dir(final.parent)
    return final


def set_aside(path: Path) -> Path:
    """Move a checkpoint that does not verify out of the way of the one that will be trained in its stead.

    It stays to be looked at until a newer one has been verified.
    """
    aside = path.with_name(f"{BAD}{path.name}-{uuid.uuid4().hex[:12]}")
    path.rename(aside)
    return aside


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint; cut off midway it is a dead folder, never a damaged checkpoint."""
    doomed = path.with_name(f"{_DEAD}{uuid.uuid4().hex[:12]}")
    path.rename(doomed)
    shutil.rmtree(doomed)


def remove_leftovers(checkpoints_dir: Path) -> None:
    """Take away what writers before this one left unfinished, and with it what they could still publish.

    Only the trial's one live attempt may call it, after it has the lease and before it chooses a checkpoint.
    """
    if not checkpoints_dir.is_dir():
        return
    for path in checkpoints_dir.glob(f"{_TEMPORARY}*"):
        path.rename(path.with_name(f"{_DEAD}{uuid.uuid4().hex[:12]}"))
    for path in checkpoints_dir.glob(f"{_DEAD}*"):
        # A stale writer may still add files to it.
        shutil.rmtree(path, ignore_errors=True)
