"""A driver that outlives the login that started it: a process of a session of its own, or a small job."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, ClusterError, InputFileError
from windtunnel.launch.place import COMMAND_ENV
from windtunnel.ledger.tail import find_last_line
from windtunnel.process import run_command
from windtunnel.slurm.surroundings import STRANGE_PREFIXES, find_strange_variables
from windtunnel.units import format_time_slurm

if TYPE_CHECKING:
    from windtunnel.settings.cluster import ClusterSettings
    from windtunnel.settings.sweep import DriverSettings

RECORD = "driver.json"
JOB_ENV = "WINDTUNNEL_DRIVER_JOB"
"""Variable with the id of the job that a driver is."""
_SBATCH_TIMEOUT_S = 60.0
_POLL_S = 0.05
_LEAD_S = 120
"""Seconds before its time limit at which a driver's job has itself started again."""


@dataclass(frozen=True)
class DriverJob:
    """`driver.json` of a study: the job that drives it, or waits to."""

    SCHEMA: ClassVar[str] = "windtunnel.driver/1"

    job_id: str
    log: str
    command: str
    """What was asked for, as one types it."""


@dataclass(frozen=True)
class Start:
    """How a detached driver began; one that neither drives nor has a code is still at it."""

    drives: bool
    code: int | None = None
    """Its exit code where it ended instead."""


def start_detached(argv: Sequence[str], log: Path, *, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start `argv` in a session of its own, deaf to hang-ups, with all that it says added to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits what is ignored
    try:
        with log.open("ab") as out:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **env},
            )
    finally:
        signal.signal(signal.SIGHUP, before)


def await_driver(child: "subprocess.Popen[bytes]", drives: Callable[[], bool], *, deadline_s: float) -> Start:
    """Wait until the child drives its study, or has ended, at most `deadline_s`."""
    deadline = time.monotonic() + deadline_s
    while not drives():
        code = child.poll()
        if code is not None or time.monotonic() >= deadline:
            return Start(drives=False, code=code)
        time.sleep(_POLL_S)
    return Start(drives=True)


def render_driver_script(
    argv: Sequence[str],
    *,
    study: str,
    log: Path,
    cwd: Path,
    command: str,
    driver: "DriverSettings",
    cluster: "ClusterSettings",
) -> str:
    """The batch script of a driver: one CPU, started again after a node's failure, and before its time is up."""
    optional = {
        "partition": driver.partition or cluster.partition,
        "account": cluster.account,
        "qos": cluster.qos,
    }
    options = {
        "job-name": f"windtunnel-driver-{study}",
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": "1",
        "mem": f"{driver.memory}M",
        "time": format_time_slurm(driver.time),
        "signal": f"B:USR1@{_LEAD_S}",
        "open-mode": "append",
        "output": str(log),
        "chdir": str(cwd),
        **{name: value for name, value in optional.items() if value},
    }
    lines = [f"#SBATCH --{name}={shlex.quote(value)}" for name, value in options.items()]
    own = f"export {JOB_ENV}=$job {COMMAND_ENV}={shlex.quote(command)}"
    return "\n".join(["#!/bin/bash", *lines, "#SBATCH --requeue", *_BODY, own, f"{shlex.join(argv)} &", *_END, ""])


_BODY = (
    "job=$SLURM_JOB_ID conf=${SLURM_CONF-}",
    "# What Slurm says of this job must not reach the jobs that its driver submits.",
    f"for name in $(compgen -e | grep -E '^({'|'.join(STRANGE_PREFIXES)})'); do unset \"$name\"; done",
    '[ -z "$conf" ] || export SLURM_CONF=$conf',
    'trap \'echo "time is nearly up: asking Slurm to start this driver again"; scontrol requeue "$job"\' USR1',
)
_END = (
    "driver=$!",
    "# A signal ends `wait` early.",
    'while kill -0 "$driver" 2>/dev/null; do wait "$driver"; done',
    'wait "$driver"',
)


def submit_driver(script: str, *, environ: Mapping[str, str]) -> str:
    """Submit the driver's script; its job id. Raises ClusterError with sbatch's words when it is refused."""
    argv = ["env", *(f"--unset={name}" for name in find_strange_variables(environ)), "sbatch", "--parsable"]
    finished = run_command(argv, stdin=script, timeout_s=_SBATCH_TIMEOUT_S, check=False)
    if finished.code:
        words = find_last_line(finished.stderr) or "it gave no reason"
        raise ClusterError(f"sbatch refused the driver's job: {words}; or start it here, with --detach")
    return finished.stdout.strip().partition(";")[0]  # `id;cluster` where there are several


def write_driver_job(folder: Path, job: DriverJob) -> None:
    """Let `status` find the job."""
    write_artifact(folder / RECORD, job)


def read_driver_job(folder: Path) -> DriverJob | None:
    """The job that was last submitted to drive the study in `folder`, if any."""
    try:
        return read_artifact(folder / RECORD, DriverJob)
    except (ArtifactError, InputFileError):
        return None
