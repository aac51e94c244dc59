"""The Comm over MPI, and the `mpiexec` that belongs to the MPI library that mpi4py loads.

mpi4py is imported inside: importing this module starts no MPI.
"""

import re
import shutil
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from windtunnel.comm.counter import Counter
from windtunnel.errors import ClusterError, CommandError
from windtunnel.process import run_command

_MAPPED_LIBRARY = re.compile(r"(/\S*/libmpi(?:_abi)?\.so\S*)")
# What `MPI_Get_library_version` starts with, what `mpiexec --version` prints, and the launcher's names.
_FAMILIES = {
    "Open MPI": (("OpenRTE", "Open MPI", "prte"), ("mpiexec.openmpi", "mpiexec")),
    "MPICH": (("HYDRA",), ("mpiexec.hydra", "mpiexec.mpich", "mpiexec")),
}


class MpiComm:
    """All ranks of COMM_WORLD; objects travel pickled. An uncaught exception on one rank aborts all of them."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._world = MPI.COMM_WORLD
        self.rank: int = self._world.Get_rank()
        self.size: int = self._world.Get_size()
        sys.excepthook = self._abort

    def barrier(self) -> None:
        """Return once every rank is here."""
        self._world.Barrier()

    def gather(self, value: Any) -> list[Any] | None:
        """On rank 0 the values of all ranks in rank order; None elsewhere."""
        gathered: list[Any] | None = self._world.gather(value, root=0)
        return gathered

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks in rank order, on every rank."""
        gathered: list[Any] = self._world.allgather(value)
        return gathered

    def open_counter(self) -> Counter:
        """In rank 0's memory."""
        return MpiCounter(self._world)

    def _abort(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        # Without this the other ranks would wait for ever in their next exchange.
        print(f"rank {self.rank} of {self.size}:", file=sys.stderr)
        sys.__excepthook__(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        self._world.Abort(1)


class MpiCounter:
    """A number in rank 0's memory, counted by atomic one-sided operations: no rank serves the others."""

    def __init__(self, world: Any) -> None:
        import numpy as np
        from mpi4py import MPI

        self._mpi, self._np = MPI, np
        self._world = world
        self._window = MPI.Win.Allocate(8 if world.Get_rank() == 0 else 0, 8, comm=world)
        if world.Get_rank() == 0:
            memory: Any = self._window.tomemory()
            memory[:] = bytes(8)
        world.Barrier()
        self._window.Lock_all()

    def take(self, step: int = 1) -> int:
        """As in Counter."""
        found = self._np.zeros(1, dtype=self._np.int64)
        added = self._np.full(1, step, dtype=self._np.int64)
        self._window.Fetch_and_op(added, found, 0, 0, self._mpi.SUM)
        self._window.Flush(0)
        return int(found[0])

    def close(self) -> None:
        """As in Counter."""
        self._window.Unlock_all()
        self._world.Barrier()
        self._window.Free()


def find_mpiexec() -> tuple[str, ...]:
    """The start of a command line that launches ranks for the MPI library mpi4py loads here; add `-n N`.

    Raises ClusterError when no launcher of that family is found: another family's would start N worlds of one.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    version = MPI.Get_library_version()
    family = next((name for name in _FAMILIES if name in version), "")
    if not family:
        raise ClusterError(f"no known mpiexec for MPI library {version[:60]!r}: expected {' or '.join(_FAMILIES)}")
    words, names = _FAMILIES[family]
    for path in _list_launchers(names):
        if any(word in _read_version(path) for word in words):
            return (path, *(("--allow-run-as-root", "--oversubscribe") if family == "Open MPI" else ()))
    raise ClusterError(f"mpi4py loads {family} but no {' or '.join(names)} of it is found: put it on PATH")


def _list_launchers(names: tuple[str, ...]) -> list[str]:
    # A wheel's or a module's launcher lies in bin/ of the prefix its library was loaded from.
    mapped = Path("/proc/self/maps")
    libraries = sorted(set(_MAPPED_LIBRARY.findall(mapped.read_text()))) if mapped.exists() else []
    folders = [str(parent / "bin") for library in libraries for parent in Path(library).parents[1:4]]
    found = [shutil.which(name, path=folder) for folder in folders for name in names]
    found += [shutil.which(name) for name in names]
    return [path for path in found if path]


def _read_version(launcher: str) -> str:
    try:
        return run_command([launcher, "--version"], timeout_s=30, check=False).stdout
    except CommandError:
        return ""
