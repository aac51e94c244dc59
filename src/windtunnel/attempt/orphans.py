"""Processes that ranks leave behind, in whatever session: none of them outlives the attempt."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_POLL_S = 0.02
_TIMEOUT_S = 5.0


@contextmanager
def no_orphans() -> Iterator[None]:
    """What is started inside the block, and all that it starts, is killed and reaped at its end."""
    prctl = ctypes.CDLL(None).prctl
    before = set(list_children(os.getpid()))
    # What a child leaves behind has this process as its parent from here on.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _kill_children(before)
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


def list_children(pid: int) -> list[int]:
    """Processes whose parent is `pid`, also those that have ended and wait to be reaped."""
    entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [int(entry.name) for entry in entries if _read_parent(entry) == pid]


def _kill_children(spared: set[int]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S  # one that waits for a dead file system cannot be killed
    while (children := set(list_children(os.getpid())) - spared) and time.monotonic() < deadline:
        for child in children:
            _kill(child)
        time.sleep(_POLL_S)


def _kill(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, os.WNOHANG)
    except (ProcessLookupError, ChildProcessError):
        pass


def _read_parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
