"""When a job's time is up, and whether the signal that a job got is the one that Slurm sends before that."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

_LEAD_S = 60
# sbatch(1): "the signal may be sent up to 60 seconds earlier than specified".
_EARLY_S = 60.0
# What lies between the clocks of the controller and of the node, and between the signal and its handler.
_SLACK_S = 30.0
_FIELDS_BEFORE_START = 19  # of /proc/PID/stat, from its third field on


def find_signal_lead_s(time_min: int) -> int:
    """Seconds before the limit at which a job asks to be told of it."""
    return min(_LEAD_S, time_min * 60 // 6)


def may_be_warning(at: float, *, ends_at: float, time_min: int) -> bool:
    """Whether a signal `at` a time may be the one before the end; both are seconds since 1970 UTC.

    Slurm's own imprecision makes that any signal of a job of two minutes.
    """
    return at >= ends_at - _window_s(time_min)


def is_near_end(at: float, *, ends_at: float, time_min: int) -> bool:
    """Whether a signal `at` a time is the one before the end, as far as clocks alone can tell.

    Never in the first half of the limit, so that not every preemption of a short job is a time-out.
    """
    return at >= ends_at - min(_window_s(time_min), time_min * 30.0)


def find_job_end(environ: Mapping[str, str], *, began_at: float, time_min: int) -> float:
    """The end of this job's time, in seconds since 1970 UTC, by Slurm's word or else from its beginning.

    `began_at` is the earliest that is known of the job; versions before 23.02 tell a job neither time.
    """
    ends_at = _read_time(environ, "SLURM_JOB_END_TIME")
    if ends_at is not None:
        return ends_at
    told = _read_time(environ, "SLURM_JOB_START_TIME")
    return (min(began_at, told) if told is not None else began_at) + time_min * 60.0


def read_process_began_at(pid: int) -> float:
    """When a process of this host began, in seconds since 1970 UTC; now, where that cannot be read.

    A job's script becomes our call and then the supervisor by `exec`: the process is as old as the job.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        began_s = int(fields[_FIELDS_BEFORE_START]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.time()
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)


def _window_s(time_min: int) -> float:
    return find_signal_lead_s(time_min) + _EARLY_S + _SLACK_S


def _read_time(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name, "")
    return float(text) if text.isdecimal() and int(text) else None
