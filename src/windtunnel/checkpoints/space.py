"""Whether there is room for a checkpoint, asked before it is begun: a full disk must not cost the last good one."""

import os
from pathlib import Path

from windtunnel.errors import StorageError
from windtunnel.units import format_bytes

_SPARE = 1.02
"""For what lies beside the tensors: the index, the manifest, and the file system's own blocks."""
_SPARE_BYTES = 1 << 20


def check_space(folder: Path, size_bytes: int) -> None:
    """Raise StorageError when the file system has no room for so many bytes. A quota shows itself only in writing."""
    folder.mkdir(parents=True, exist_ok=True)
    found = os.statvfs(folder)
    free_bytes = found.f_bavail * found.f_frsize
    needed_bytes = int(size_bytes * _SPARE) + _SPARE_BYTES
    if free_bytes < needed_bytes:
        raise StorageError(
            f"the checkpoint needs {format_bytes(needed_bytes)} in {folder}, its file system has "
            f"{format_bytes(free_bytes)}: make room; checkpoints that are there were left as they are"
        )
