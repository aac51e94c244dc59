"""The rim to submitit: a trial's supervisor as a local process, or as a task of a Slurm job array.

submitit carries the job there and no more: what became of it is read from the trial's own records.
"""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import DelayedSubmission, FailedJobError, JobPaths
from submitit.helpers import clean_env
from submitit.local.local import LocalExecutor
from submitit.slurm.slurm import SlurmExecutor

from windtunnel.errors import ClusterError, CommandError
from windtunnel.records.plan import Shape

Call = Callable[..., Any]
_SPARE_MIN = 2
# What sbatch prints last when the controller is away, slow or busy. It may have taken the job all the same.
_NO_ANSWER = (
    "unable to contact slurm controller",
    "timed out",
    "timeout",
    "connection refused",
    "connection reset",
    "communication connection failure",
    "communication shutdown failure",
    "communications receive failure",
    "communications send failure",
    "zero bytes were transmitted",
    "backup controller in standby",
    "temporarily un",
)


def exec_command(argv: Sequence[str]) -> None:
    """Become `argv`: so that signals for the job reach the supervisor itself, past submitit's own handlers."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], list(argv))


def submit_local(argv: Sequence[str], shape: Shape, *, folder: Path) -> "submitit.Job[None]":
    """Start `argv` as a process of this machine; the job's id is the pid of submitit's controller."""
    return submit_local_call(exec_command, (tuple(argv),), shape, folder=folder)


def submit_local_call(function: Call, args: tuple[Any, ...], shape: Shape, *, folder: Path) -> "submitit.Job[Any]":
    """Call a function in a process of this machine."""
    executor = LocalExecutor(folder)
    # The supervisor holds the time limit itself; submitit's, which kills hard, is only behind it.
    executor.update_parameters(timeout_min=shape.time_min + _SPARE_MIN, **_local_gpus(shape))
    with _sigint_blocked():
        return executor.submit(function, *args)


def submit_array(commands: Sequence[Sequence[str]], parameters: dict[str, Any], *, folder: Path) -> list[str]:
    """Submit `commands` as one job array (one command: as a plain job) and return their job ids in order."""
    calls = [(exec_command, (tuple(argv),)) for argv in commands]
    return [str(job.job_id) for job in submit_calls(calls, parameters, folder=folder)]


def submit_calls(
    calls: Sequence[tuple[Call, tuple[Any, ...]]], parameters: dict[str, Any], *, folder: Path
) -> "list[submitit.Job[Any]]":
    """Submit function calls as one job array.

    Raises, with sbatch's own words, ClusterError
    when Slurm refuses, and CommandError when Slurm does not answer: then it may have taken them all the same.
    """
    if shutil.which("sbatch") is None:
        raise ClusterError("sbatch is not on PATH: start on a login node of the cluster, or set cluster=local")
    # `exec`: the batch shell becomes the job's process, so that the signal for the batch script reaches it.
    executor = SlurmExecutor(folder, python=f"exec {shlex.quote(sys.executable)}")
    executor.update_parameters(**parameters)
    jobs = []
    try:
        with _slurm_env(), executor.batch():
            for function, args in calls:
                jobs.append(executor.submit(function, *args))
    except FailedJobError as error:
        raise _explain_sbatch(str(error)) from error
    return jobs


def supply_call(argv: Sequence[str], shape: Shape, *, folder: Path, job_id: str) -> None:
    """Give a job the command that it waits for, if it has none.

    submitit does so once sbatch has answered; where the answer was lost, the job would find nothing to run.
    """
    pickle = Path(JobPaths(folder, job_id=job_id, task_id=0).submitted_pickle)
    if pickle.exists():
        return
    call = DelayedSubmission(exec_command, tuple(argv))
    call.set_timeout(shape.time_min, 0)
    temporary = pickle.with_name(f".{pickle.name}.{os.getpid()}.tmp")
    call.dump(temporary)
    temporary.rename(pickle)


def find_stderr(folder: Path, job_id: str) -> Path:
    """Where submitit put the supervisor's own stderr."""
    return Path(JobPaths(folder, job_id=job_id, task_id=0).stderr)


def _explain_sbatch(stderr: str) -> ClusterError | CommandError:
    line = next(reversed(stderr.strip().splitlines()), "no reason given")
    if any(text in line.lower() for text in _NO_ANSWER):
        return CommandError(f"sbatch got no answer from Slurm: {line}")
    return ClusterError(f"sbatch refused it: {line}")


def _local_gpus(shape: Shape) -> dict[str, Any]:
    if not shape.gpus_per_node:
        return {}
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.isdecimal()]
    chosen = [int(part) for part in visible[: shape.gpus_per_node]]
    return {"gpus_per_node": shape.gpus_per_node, **({"visible_gpus": chosen} if chosen else {})}


@contextmanager
def _slurm_env() -> Iterator[None]:
    # The driver may itself run inside a job, whose variables would bend the new job's request; but
    # SLURM_CONF says where the cluster is.
    conf = os.environ.get("SLURM_CONF")
    with clean_env():
        if conf is not None:
            os.environ["SLURM_CONF"] = conf
        yield


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    # A child inherits the mask: Ctrl-C in the terminal then reaches the driver alone, which stops its
    # trials in order; submitit's controller would kill them after one second.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
