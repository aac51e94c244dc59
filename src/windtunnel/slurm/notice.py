"""Why this process's job was told to stop, by the controller's own record of it.

The warning that time is nearly up leaves a job running; a preemption, a cancellation or a requeue ends it.
"""

import re
from collections.abc import Mapping

from windtunnel.errors import CommandError
from windtunnel.process import run_command

_TIMEOUT_S = 5.0  # a job that is being ended has KillWait, often 30 s, for all that it still does
_FIELD = re.compile(r"\b(JobState|Reason|PreemptTime)=(\S+)")
_TIME_IS_UP = frozenset({"TimeLimit", "DeadLine"})


def read_is_ended(environ: Mapping[str, str]) -> bool | None:
    """Whether Slurm ends this job for another cause than its time; None where it does not say."""
    job_id = environ.get("SLURM_JOB_ID", "")
    if not job_id:
        return None
    try:
        finished = run_command(["scontrol", "show", "job", "--oneliner", job_id], timeout_s=_TIMEOUT_S, check=False)
    except CommandError:
        return None
    return parse_is_ended(finished.stdout) if finished.code == 0 else None


def parse_is_ended(text: str) -> bool | None:
    """The same of `scontrol show job`. A job that is preempted with a grace runs on, but has a PreemptTime."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        fields.setdefault(name, value)
    state = fields.get("JobState")
    if state is None:
        return None
    if state == "TIMEOUT" or fields.get("Reason") in _TIME_IS_UP:
        return False
    return state != "RUNNING" or fields.get("PreemptTime", "None") not in ("None", "N/A", "Unknown")
