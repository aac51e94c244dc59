"""Finds and loads the compiled library beside this file, and refuses one built from other sources.

The library is plain C: it knows neither torch nor Python, so one build serves every version of both.
"""

import ctypes
from functools import cache
from pathlib import Path

from windtunnel.errors import ClusterError

ABI_VERSION = 2
LIBRARY_FILE = Path(__file__).with_name("libwindtunnel.so")
OPERATORS_FILE = Path(__file__).with_name("libwindtunnel_torch.so")
"""Operators for torch, which `windtunnel.kernels` loads."""


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
    return library
