"""Copies of memory that is not read again soon, past the caches and on several cores, by the compiled library."""

import ctypes
from collections.abc import Sequence

from windtunnel.errors import ClusterError
from windtunnel.native.library import load_library


def is_available() -> bool:
    """Whether the library is there."""
    try:
        load_library()
    except ClusterError:
        return False
    return True


def copy_regions(regions: Sequence[tuple[int, int, int]], *, threads: int) -> None:
    """Copy each region of (target address, source address, bytes); none overlaps another, any alignment will do.

    Raises ClusterError without the compiled library.
    """
    if not regions:
        return
    targets, sources, sizes = zip(*regions, strict=True)
    addresses, lengths = ctypes.c_void_p * len(regions), ctypes.c_int64 * len(regions)
    load_library().windtunnel_stream_copy(
        addresses(*targets), addresses(*sources), lengths(*sizes), len(regions), threads
    )
