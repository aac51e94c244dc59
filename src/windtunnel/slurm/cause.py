"""Why Slurm signalled a job: its time was up, it was preempted, requeued or cancelled, or its node was taken.

The controller's view and accounting's complete each other, and each is asked while the signal is fresh:

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
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from windtunnel.errors import CommandError
from windtunnel.process import run_command
from windtunnel.slurm.accounting import read_run_states

_TIMEOUT_S = 10.0
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


def judge_cause(job: ShownJob | None, accounted: Iterable[str], *, restarts: int, near_end: bool) -> Cause:
    """The cause, from what the two say: `accounted` are the states of runs that ended about now.

    `restarts` are those that this run was started with, `near_end` whether its time was nearly up.
    """
    for state in accounted:
        word = state.split()[0].rstrip("+") if state else ""
        if word in _ACCOUNTED:
            return _ACCOUNTED[word]
    if job is None:
        return Cause.TIME_LIMIT if near_end else Cause.UNKNOWN
    if job.reason == "TimeLimit" or job.state == "TIMEOUT":
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
    return Cause.TIME_LIMIT if near_end else Cause.UNKNOWN


def read_cause(raw_job_id: str, *, since: float, restarts: int, near_end: bool) -> Cause:
    """Ask Slurm why the job was signalled. `since`: when this run began, in seconds since 1970 UTC.

    One that does not answer is passed over; with neither there is only the clock.
    """
    with ThreadPoolExecutor(2) as pool:
        shown, accounted = pool.submit(_read_job, raw_job_id), pool.submit(_read_states, raw_job_id, since)
        return judge_cause(shown.result(), accounted.result(), restarts=restarts, near_end=near_end)


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
    try:
        return read_run_states(raw_job_id, since=since, timeout_s=_TIMEOUT_S)
    except CommandError:
        return []
