"""The native functions of the loader, and the unpackers that they call: those of hdf5plugin's own filters.

All of it runs without Python's lock.
"""

import ctypes
from functools import cache
from pathlib import Path

import hdf5plugin
import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ClusterError
from windtunnel.native.library import load_library

STAGES = {"shuffle": 1, "lz4": 2, "zstd": 4, "fletcher32": 8}
"""What a chunk went through, by the names of the filters; as in windtunnel.h."""
_NO_MEMORY, _UNREAD = 1, 3
_SYMBOLS = (
    ("libh5lz4.so", "LZ4_decompress_safe"),
    ("libh5zstd.so", "ZSTD_createDCtx"),
    ("libh5zstd.so", "ZSTD_decompressDCtx"),
    ("libh5zstd.so", "ZSTD_freeDCtx"),
)


def gather(table: NDArray[np.generic], first_rows: NDArray[np.int64], out: int, *, rows: int, threads: int) -> None:
    """Copy windows of `rows` rows of a C-ordered table, each from one of `first_rows`, to the address `out`."""
    assert table.flags.c_contiguous, "the table is not C-ordered"
    assert first_rows.dtype == np.int64, "first_rows is not int64"
    starts = np.ascontiguousarray(first_rows)
    if len(starts) == 0:
        return
    assert starts.min() >= 0, "a window begins before the table"
    assert starts.max() + rows <= len(table), "a window ends behind the table"
    row_bytes = table.itemsize * int(np.prod(table.shape[1:], dtype=np.int64))
    load_library().windtunnel_gather_windows(
        table.ctypes.data, row_bytes, starts.ctypes.data, len(starts), rows, out, threads
    )


def scatter(
    columns: NDArray[np.int64], chunks: NDArray[np.int64], copies: NDArray[np.int64], *, threads: int
) -> tuple[int, str] | None:
    """Unpack chunks (n, 7) of columns (k, 3) once each, and make their copies (m, 3): as windtunnel.h has them.

    None when all is well, else the number of a chunk and what is wrong with it.
    """
    columns, chunks, copies = (np.ascontiguousarray(part, np.int64) for part in (columns, chunks, copies))
    found = load_library().windtunnel_scatter_chunks(
        columns.ctypes.data,
        chunks.ctypes.data,
        len(chunks),
        copies.ctypes.data,
        _find_unpackers().ctypes.data,
        threads,
    )
    number, reason = divmod(int(found), 8)
    if reason == _NO_MEMORY:
        raise MemoryError("no memory to unpack a chunk")
    return (number, "is cut off" if reason == _UNREAD else "was altered") if found else None


@cache
def _find_unpackers() -> NDArray[np.int64]:
    found = []
    for file, symbol in _SYMBOLS:
        path = Path(hdf5plugin.PLUGIN_PATH) / file
        try:
            function = getattr(ctypes.CDLL(str(path)), symbol)
        except (OSError, AttributeError) as error:
            raise ClusterError(
                f"{path} has no {symbol} ({error}): install hdf5plugin from its wheel, 5 or newer"
            ) from error
        found.append(ctypes.cast(function, ctypes.c_void_p).value or 0)
    return np.array(found, np.int64)
