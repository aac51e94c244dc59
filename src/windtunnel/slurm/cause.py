"""Why Slurm signalled a job: its time was up, it was preempted, requeued or cancelled, or its node was taken.

The controller's view and accounting's complete each other:

| cause | `scontrol show job` | accounting |
|---|---|---|
| time limit | Reason=TimeLimit; before it, RUNNING near its end | TIMEOUT |
| preemption, cancelled | COMPLETING, PreemptTime | PREEMPTED |
| preemption, requeued | COMPLETING, Restarts one more | PREEMPTED |
| requeue | COMPLETING, Restarts one more | REQUEUED |
| scancel | COMPLETING, Reason=None | CANCELLED by UID |
| node | PENDING with one more Restart, or Reason=NodeDown | NODE_FAIL |

Recorded from Slurm 22.05. Without accounting a preemption with requeue and a requeue look the same.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from windtunnel.errors import CommandError
from windtunnel.process import run_command
from windtunnel.slurm.accounting import read_run_states

_TIMEOUT_S = 10.0
_ACCOUNTED_WITHIN_S, _AGAIN_S = 3.0, 0.3
_FIELD = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")


class Cause(StrEnum):
    """Why a job was told to end."""

    TIME_LIMIT = "time limit"
    PREEMPTION = "preemption"
    REQUEUE = "requeue"
    CANCEL = "scancel"
    NODE = "node"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Clock:
    """What the job's time limit says of a signal's moment."""

    may_be_up: bool
    """Whether it may be the warning before the limit; of a job of two minutes any signal may."""
    is_up: bool
    """Whether it is, as far as clocks alone can tell."""


@dataclass(frozen=True)
class ShownJob:
    """What `scontrol show job` says of a job's present run."""

    state: str
    reason: str
    restarts: int
    preempted: bool
    """Whether it has a PreemptTime."""


def parse_job(text: str) -> ShownJob | None:
    """The first job of `scontrol -o show job`; None where there is none."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        fields.setdefault(name, value)
    if "JobState" not in fields:
        return None
    return ShownJob(
        state=fields["JobState"],
        reason=fields.get("Reason", "None"),
        restarts=int(fields.get("Restarts", "0")),
        preempted=fields.get("PreemptTime", "None") not in ("None", "Unknown", "N/A", ""),
    )


def judge_cause(job: ShownJob | None, accounted: Iterable[str], *, restarts: int, clock: Clock) -> Cause:
    """The cause, from what the two say: `accounted` are the states of runs that ended about now.

    `restarts` are those that this run was started with.
    """
    for state in accounted:
        word = state.split()[0].rstrip("+") if state else ""
        if word in _ACCOUNTED:
            return _ACCOUNTED[word]
    if job is None:
        return Cause.TIME_LIMIT if clock.is_up else Cause.UNKNOWN
    if job.reason in ("TimeLimit", "DeadLine") or job.state in ("TIMEOUT", "DEADLINE"):
        return Cause.TIME_LIMIT
    if job.state == "NODE_FAIL" or job.reason == "NodeDown":
        return Cause.NODE
    if job.preempted or job.state == "PREEMPTED":
        return Cause.PREEMPTION
    if job.restarts > restarts:
        # Of a node that is down nothing is waited for: the job is at once back in the queue.
        return Cause.NODE if job.state == "PENDING" else Cause.REQUEUE
    if job.state in ("COMPLETING", "CANCELLED"):
        return Cause.CANCEL
    # The warning before the time limit leaves the job running, as nothing else of Slurm's does.
    return Cause.TIME_LIMIT if clock.may_be_up else Cause.UNKNOWN


def read_cause(raw_job_id: str, *, since: float, restarts: int, clock: Clock) -> Cause:
    """Ask Slurm why the job was signalled. `since`: when this run began, in seconds since 1970 UTC.

    Accounting is asked only where the controller leaves it open: many jobs may be signalled at once. With neither
    there is only the clock.
    """
    if not raw_job_id:
        return judge_cause(None, (), restarts=restarts, clock=clock)
    job = _read_job(raw_job_id)
    cause = judge_cause(job, (), restarts=restarts, clock=clock)
    if job is not None and cause is not Cause.REQUEUE:
        return cause
    return judge_cause(job, _read_states(raw_job_id, since), restarts=restarts, clock=clock)


_ACCOUNTED = {
    "TIMEOUT": Cause.TIME_LIMIT,
    "DEADLINE": Cause.TIME_LIMIT,
    "PREEMPTED": Cause.PREEMPTION,
    "REQUEUED": Cause.REQUEUE,
    "CANCELLED": Cause.CANCEL,
    "NODE_FAIL": Cause.NODE,
}


def _read_job(raw_job_id: str) -> ShownJob | None:
    try:
        return parse_job(run_command(["scontrol", "-o", "show", "job", raw_job_id], timeout_s=_TIMEOUT_S).stdout)
    except CommandError:
        return None


def _read_states(raw_job_id: str, since: float) -> list[str]:
    """What accounting has of the run's end; the controller's word to it may take a moment."""
    deadline = time.monotonic() + _ACCOUNTED_WITHIN_S
    while True:
        try:
            states = read_run_states(raw_job_id, since=since, timeout_s=_TIMEOUT_S)
        except CommandError:
            return []
        if states or states is None or time.monotonic() > deadline:
            return states or []
        time.sleep(_AGAIN_S)
