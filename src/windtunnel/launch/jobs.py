"""The rim to submitit: a trial's supervisor as a local process, or as a task of a Slurm job array.

submitit carries the job there and no more: what became of it is read from the trial's own records.
"""

import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import DelayedSubmission, FailedJobError, JobPaths
from submitit.helpers import clean_env
from submitit.local.local import LocalExecutor
from submitit.slurm.slurm import SlurmExecutor, _make_sbatch_string

from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.call import exec_command
from windtunnel.ledger.tail import find_last_line
from windtunnel.process import run_command
from windtunnel.records.plan import Shape
from windtunnel.slurm.surroundings import KEPT, find_strange_variables

Call = Callable[..., Any]
# `exec`: the batch shell becomes the job's process, so that the signal for the batch script reaches it.
_PYTHON = f"exec {shlex.quote(sys.executable)}"
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
)
# Words of a limit that jobs in the queue use up: it lets more in once they have ended.
_FULL = ("submitjob", "resource temporarily unavailable", "maxjobcount")
_POLICY = "violates accounting/qos policy"
_REASON = re.compile(r"^sbatch: error: ((?:QOS|Assoc)\w+)$", re.MULTILINE)
_START = re.compile(r"to start at (\S+) using .* on nodes (\S+)")
_TEST_S = 60.0


@dataclass(frozen=True)
class Estimate:
    """What `sbatch --test-only` says of a job: when it would start and where, or why it never could."""

    start: str
    nodes: str
    refusal: str = ""


class CallExecutor(SlurmExecutor):
    """submitit's, whose jobs run `launch.call`."""

    @property
    def _submitit_command_str(self) -> str:
        return render_call(Path(self.folder))


def render_call(folder: Path) -> str:
    """The command of a batch script whose pickles are in `folder`."""
    return f"{_PYTHON} -u -m windtunnel.launch.call {shlex.quote(str(folder))}"


def submit_local(argv: Sequence[str], shape: Shape, *, folder: Path) -> "submitit.Job[None]":
    """Start `argv` as a process of this machine; the job's id is the pid of submitit's controller."""
    return submit_local_call(exec_command, (tuple(argv),), shape, folder=folder)


def submit_local_call(function: Call, args: tuple[Any, ...], shape: Shape, *, folder: Path) -> "submitit.Job[Any]":
    """Call a function in a process of this machine."""
    executor = LocalExecutor(folder)
    # The supervisor holds the time limit itself; submitit's, which kills hard, is only behind it.
    executor.update_parameters(timeout_min=shape.time_min + _SPARE_MIN, **_local_gpus(shape))
    with _clean_env(), _sigint_blocked():
        return executor.submit(function, *args)


def submit_array(commands: Sequence[Sequence[str]], parameters: dict[str, Any], *, folder: Path) -> list[str]:
    """Submit `commands` as one job array (one command: as a plain job) and return their job ids in order."""
    calls = [(exec_command, (tuple(argv),)) for argv in commands]
    return [str(job.job_id) for job in submit_calls(calls, parameters, folder=folder)]


def submit_calls(
    calls: Sequence[tuple[Call, tuple[Any, ...]]], parameters: dict[str, Any], *, folder: Path
) -> "list[submitit.Job[Any]]":
    """Submit function calls as one job array.

    Raises, with sbatch's own words, ClusterError when Slurm refuses, FullQueueError when it takes no more jobs now,
    and CommandError when it does not answer: then it may have taken them all the same.
    """
    if shutil.which("sbatch") is None:
        raise ClusterError("sbatch is not on PATH: start on a login node of the cluster, or set cluster=local")
    executor = CallExecutor(folder)
    executor.update_parameters(**parameters)
    jobs = []
    try:
        with _clean_env(), executor.batch():
            for function, args in calls:
                jobs.append(executor.submit(function, *args))
    except FailedJobError as error:
        raise _explain_sbatch(str(error)) from error
    return jobs


def render_script(parameters: dict[str, Any], *, tasks: int, folder: Path) -> str:
    """The batch script that `tasks` commands are submitted with."""
    return _make_sbatch_string(render_call(folder), folder, map_count=tasks if tasks > 1 else None, **parameters)


def estimate_start(script: str) -> Estimate:
    """What Slurm says of a script without taking it. Raises CommandError when it does not answer."""
    with _clean_env():
        finished = run_command(["sbatch", "--test-only"], stdin=script, timeout_s=_TEST_S, check=False)
    words = finished.stderr + finished.stdout
    found = _START.search(words)
    if finished.code == 0 and found is not None:
        return Estimate(found[1], found[2])
    error = _explain_sbatch(words)
    if isinstance(error, CommandError):
        raise error
    return Estimate("", "", "" if isinstance(error, FullQueueError) else _find_reason(words))


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


def _explain_sbatch(stderr: str) -> ClusterError | CommandError | FullQueueError:
    line = _find_reason(stderr)
    reasons = " ".join(_REASON.findall(stderr))
    if any(text in f"{reasons} {line}".lower() for text in _FULL) or (_POLICY in line.lower() and not reasons):
        return FullQueueError(f"Slurm takes no more jobs now: {reasons or line}")
    if any(text in line.lower() for text in _NO_ANSWER):
        return CommandError(f"sbatch got no answer from Slurm: {line}")
    return ClusterError(f"sbatch refused it: {line}{f' ({reasons})' if reasons else ''}")


def _find_reason(text: str) -> str:
    return find_last_line(text) or "no reason given"


def _local_gpus(shape: Shape) -> dict[str, Any]:
    if not shape.gpus_per_node:
        return {}
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.isdecimal()]
    chosen = [int(part) for part in visible[: shape.gpus_per_node]]
    return {"gpus_per_node": shape.gpus_per_node, **({"visible_gpus": chosen} if chosen else {})}


@contextmanager
def _clean_env() -> Iterator[None]:
    # The driver may itself run inside a job or under mpiexec, whose variables would bend the new job's request
    # and tell its ranks of a world that is not theirs; but SLURM_CONF says where the cluster is.
    conf = os.environ.get(KEPT)
    with clean_env(find_strange_variables(os.environ)):
        if conf is not None:
            os.environ[KEPT] = conf
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
