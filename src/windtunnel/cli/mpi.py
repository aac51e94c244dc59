"""Start a stage again under an mpiexec, where there is one that fits the installed mpi4py."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from windtunnel.errors import CommandError
from windtunnel.process import run_command

_PROBE_TIMEOUT_S = 30.0
_PROBE = "from windtunnel.comm.detect import detect_comm as d; print('size', d().size)"
# Open MPI refuses root, and more ranks than cores, unless told otherwise; its versions 4 and 5 differ in the name.
_OPEN_MPI_ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def restart_under_mpi(ranks: int, words: Sequence[str]) -> None:
    """Replace this process by `mpiexec -n ranks windtunnel words`; return when no mpiexec fits.

    Raises nothing: one process does the same work, and the results do not depend on how many do.
    """
    env = local_env(os.environ)
    mpiexec = find_mpiexec(ranks, env)
    if mpiexec is None:
        print("no mpiexec that fits mpi4py: going on with one process", flush=True)
        return
    print(f"{ranks} ranks under {mpiexec}", flush=True)
    argv = [mpiexec, "-n", str(ranks), sys.executable, "-m", "windtunnel", *words]
    sys.stdout.flush()
    os.execve(mpiexec, argv, env)


def find_mpiexec(ranks: int, env: Mapping[str, str]) -> str | None:
    """The first mpiexec (the site's before the environment's own) whose ranks mpi4py joins to one world."""
    own = str(Path(sys.executable).parent)
    folders = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part and part != own]
    found = (shutil.which("mpiexec", path=folder) for folder in [*dict.fromkeys(folders), own])
    candidates = dict.fromkeys(path for path in found if path is not None)
    return next((path for path in candidates if _fits(path, ranks, env)), None)


def local_env(env: Mapping[str, str]) -> dict[str, str]:
    """`env` for ranks on this host alone: inside a Slurm job, mpiexec would start them through Slurm."""
    kept = {key: value for key, value in env.items() if not key.startswith(("SLURM_", "PMI_", "PMIX_"))}
    return {**kept, **_OPEN_MPI_ENV}


def _fits(mpiexec: str, ranks: int, env: Mapping[str, str]) -> bool:
    argv = [mpiexec, "-n", str(ranks), sys.executable, "-c", _PROBE]
    try:
        finished = run_command(
            ["env", "-i", *(f"{key}={value}" for key, value in env.items()), *argv],
            timeout_s=_PROBE_TIMEOUT_S,
            check=False,
        )
    except CommandError as error:
        print(f"{mpiexec} does not fit: {error}", flush=True)
        return False
    if finished.stdout.count(f"size {ranks}") == ranks:
        return True
    said = (finished.stderr.strip() or finished.stdout.strip() or f"exit code {finished.code}").splitlines()
    print(f"{mpiexec} does not fit mpi4py: {' | '.join(said[:6])}", flush=True)
    return False
