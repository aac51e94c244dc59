"""What a file system says when it is full, over a quota, read-only or failing: no fault of the work that met it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from windtunnel.errors import StorageError

_CODES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE, errno.EREMOTEIO})
"""`EFBIG` is RLIMIT_FSIZE; the last three are a disk or a network file system that fails."""


def find_storage_fault(error: BaseException | None) -> OSError | None:
    """The fault of the file system that `error` is, or was raised from; None when there is none."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno in _CODES:
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def describe_fault(fault: OSError, where: str = "") -> str:
    """The file (or `where`), and what is wrong with its file system."""
    place = str(fault.filename or where or "a file")
    return f"{place}: {os.strerror(fault.errno or 0)}"


@contextmanager
def name_storage_faults(where: str) -> Iterator[None]:
    """Turn a fault of the file system inside the block into a StorageError; `where` stands for an unnamed file."""
    try:
        yield
    except OSError as error:
        fault = find_storage_fault(error)
        if fault is None:
            raise
        raise StorageError(
            f"{describe_fault(fault, where)}: make room; what runs goes on, and the same command takes it up again"
        ) from error
