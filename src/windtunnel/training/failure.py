"""Why a rank ended early, in a file of its own for the supervisor: `attempts/N/error-rank-R.json`."""

import json
import socket
import traceback
from pathlib import Path

import torch

from windtunnel.artifacts import write_atomic
from windtunnel.storage import find_storage_fault

# What Gloo and NCCL say when the process at the other end is gone.
_GONE = ("connection reset by peer", "connection closed by peer", "broken pipe", "remote process exited")


def write_failure(attempt_dir: Path, rank: int, error: BaseException) -> Path:
    """Publish what ended this rank."""
    failure = {
        "rank": rank,
        "type": name_failure(error),
        "message": str(error),
        "last_line": traceback.format_exception_only(error)[-1].strip(),
        "host": socket.gethostname(),
        "secondary": is_echo(error),
    }
    return write_atomic(attempt_dir / f"error-rank-{rank}.json", json.dumps(failure, indent=1).encode())


def is_echo(error: BaseException | None) -> bool:
    """Whether the error, or one that it was raised from, only says that another rank is gone."""
    while error is not None:
        if isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _GONE):
            return True
        error = error.__cause__
    return False


def name_failure(error: BaseException) -> str:
    """The error's class; all ways of running out of memory, and all faults of a file system, have one name each."""
    if find_storage_fault(error) is not None:
        return "StorageError"
    # torch raises a plain RuntimeError when the CPU's allocator fails.
    out_of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
    return "OutOfMemoryError" if out_of_memory else type(error).__name__
