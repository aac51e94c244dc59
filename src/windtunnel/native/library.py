"""Finds and loads the compiled library beside this file, and refuses one built from other sources.

The library is plain C: it knows neither torch nor Python, so one build serves every version of both.
"""

import ctypes
from functools import cache
from pathlib import Path

from windtunnel.errors import ClusterError

ABI_VERSION = 4
LIBRARY_FILE = Path(__file__).with_name("libwindtunnel.so")
OPERATORS_FILE = Path(__file__).with_name("libwindtunnel_torch.so")
"""Operators for torch, which `windtunnel.kernels` loads."""

_POINTER = ctypes.c_void_p
_GATHER_ARGUMENTS = (
    _POINTER,
    ctypes.c_int64,
    _POINTER,
    ctypes.c_int64,
    ctypes.c_int64,
    _POINTER,
    ctypes.c_int32,
)
_SCATTER_ARGUMENTS = (_POINTER, _POINTER, ctypes.c_int64, _POINTER, _POINTER, ctypes.c_int32)


@cache
def load_library() -> ctypes.CDLL:
    """The library; loaded once a process."""
    return open_library(LIBRARY_FILE)


def open_library(path: Path) -> ctypes.CDLL:
    """The library at `path`; raises ClusterError when it is absent, does not load, or has another interface."""
    if not path.exists():
        raise ClusterError(f"the compiled library {path} does not exist: run `make build`, or install the wheel")
    try:
        library = ctypes.CDLL(str(path))
        found = int(library.windtunnel_abi_version())
    except (OSError, AttributeError) as error:
        raise ClusterError(f"the compiled library {path} does not load ({error}): run `make build` again") from error
    if found != ABI_VERSION:
        raise ClusterError(
            f"the compiled library {path} has interface {found}, expected {ABI_VERSION}: run `make build` again"
        )
    library.windtunnel_stream_copy.argtypes = (_POINTER, _POINTER, _POINTER, ctypes.c_int64, ctypes.c_int32)
    library.windtunnel_stream_copy.restype = None
    library.windtunnel_gather_windows.argtypes = _GATHER_ARGUMENTS
    library.windtunnel_gather_windows.restype = ctypes.c_int32
    library.windtunnel_scatter_chunks.argtypes = _SCATTER_ARGUMENTS
    library.windtunnel_scatter_chunks.restype = ctypes.c_int64
    return library
