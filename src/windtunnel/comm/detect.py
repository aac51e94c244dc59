"""Which Comm this process has: MPI when a launcher started it as one of several ranks, else a world of one."""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.comm.counter import CountingComm
from windtunnel.comm.single import SingleComm
from windtunnel.errors import ClusterError

_OPEN_MPI_LIBRARY = "libmpi.so.40"  # the soname of Open MPI 4 and 5


@dataclass(frozen=True)
class Launch:
    """How this process was started: by `launcher`, as one of `size` ranks."""

    launcher: str
    size: int


# Innermost first: mpiexec inside a Slurm step inherits the step's variables.
_SIZES = (("OMPI_COMM_WORLD_SIZE", "Open MPI"), ("PMI_SIZE", "PMI"))


def read_launch(env: Mapping[str, str]) -> Launch:
    """The launcher and number of ranks that the environment tells of; `Launch("none", 1)` when it is silent.

    A batch script has SLURM_NTASKS without being a task: only a step's own variables count.
    """
    for name, launcher in _SIZES:
        if name in env:
            return Launch(launcher, _parse_size(name, env[name]))
    tasks = _parse_size("SLURM_STEP_NUM_TASKS", env.get("SLURM_STEP_NUM_TASKS", "1"))
    if "PMIX_RANK" in env:
        return Launch("PMIx", tasks)
    return Launch("srun" if tasks > 1 else "none", tasks)


def detect_comm(env: Mapping[str, str] | None = None) -> CountingComm:
    """The Comm of this process.

    Raises ClusterError when a launcher started several ranks that MPI does not join: each would do all the work.
    """
    launch = read_launch(os.environ if env is None else env)
    if launch.size == 1:
        return SingleComm()
    if launch.launcher == "Open MPI":
        _prefer_open_mpi()
    from windtunnel.comm.mpi import MpiComm

    comm = MpiComm()
    if comm.size != launch.size:
        raise ClusterError(
            f"{launch.launcher} started {launch.size} ranks but MPI joins {comm.size} of them: use the mpiexec of "
            "the MPI library that mpi4py loads (MPI4PY_LIBMPI chooses it), or srun --mpi=pmi2"
        )
    return comm


def _prefer_open_mpi() -> None:
    """Let mpi4py load the launcher's own library, even where a wheel put another one in the environment."""
    try:
        ctypes.CDLL(_OPEN_MPI_LIBRARY)
    except OSError:
        return
    os.environ.setdefault("MPI4PY_LIBMPI", _OPEN_MPI_LIBRARY)


def _parse_size(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ClusterError(f"environment variable {name} is {text!r}, expected a number of ranks: start with mpiexec")
    return int(text)
