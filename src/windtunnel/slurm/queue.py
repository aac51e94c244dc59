"""squeue: all jobs of a study in one call, those that ended lately included."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from windtunnel.errors import CommandError
from windtunnel.process import describe_failure, run_command

_TIMEOUT_S = 60.0
_FIELDS = ("%i", "%T", "%N", "%r", "%j")
_SEPARATOR = "|"
_UNKNOWN_JOB = "Invalid job id"
_GONE = (_UNKNOWN_JOB.lower(), "already completing or completed")
"""What scancel says of jobs of which nothing is left to cancel."""
_IDS_AT_MOST = 1000
_NAMES_AT_MOST = 500
_CANCELLED_AT_ONCE = 500
_ARRAY_RANGE = re.compile(r"(\d+)_\[([\d,\-]+)(?:%\d+)?\]")


@dataclass(frozen=True)
class QueuedJob:
    """A line of squeue; `job_id` is `12`, or `12_3` for task 3 of array 12."""

    job_id: str
    state: str
    nodes: str
    reason: str
    name: str


def read_queue(job_ids: Iterable[str]) -> dict[str, QueuedJob]:
    """The jobs among `job_ids`, whoever's they are, that the controller still knows, by id.

    Raises CommandError when the controller does not answer: then nothing is known of any.
    """
    wanted = set(job_ids)
    arrays = sorted({base_of(job_id) for job_id in wanted}, key=int)
    if not arrays:
        return {}
    # An argument has at most 128 KiB; squeue fetches all jobs anyway when it is given more than one.
    selection = [f"--jobs={','.join(arrays)}"] if len(arrays) <= _IDS_AT_MOST else []
    queue = _run_squeue(selection)
    return {job_id: job for job_id, job in queue.items() if job_id in wanted}


def read_own_queue() -> dict[str, QueuedJob]:
    """All jobs of this user that the controller still knows, by id; the controller sends no others.

    Raises CommandError when it does not answer.
    """
    return _run_squeue(["--me"])


def read_queue_by_name(*names: str) -> dict[str, QueuedJob]:
    """All jobs of these names that the controller still knows, by id."""
    few = len(names) <= _NAMES_AT_MOST  # an argument has at most 128 KiB
    queue = _run_squeue([f"--name={','.join(names)}"] if few else [])
    return {job_id: job for job_id, job in queue.items() if few or job.name in names}


def cancel_jobs(job_ids: Iterable[str]) -> str:
    """scancel; its own words on what it could not do, such as another user's job. Jobs that are gone are no error."""
    wanted = list(job_ids)
    words: list[str] = []
    for start in range(0, len(wanted), _CANCELLED_AT_ONCE):
        argv = ["scancel", *wanted[start : start + _CANCELLED_AT_ONCE]]
        finished = run_command(argv, timeout_s=_TIMEOUT_S, check=False)
        told = finished.stderr.splitlines()
        words += told if told or not finished.code else [f"scancel ended with exit code {finished.code}"]
    return "\n".join(line for line in words if not any(harmless in line.lower() for harmless in _GONE))


def parse_queue(text: str) -> dict[str, QueuedJob]:
    """Jobs of `squeue --array --noheader` in our format, by id."""
    jobs = {}
    for line in text.splitlines():
        fields = line.strip().split(_SEPARATOR)
        if len(fields) >= len(_FIELDS):
            job_id, state, nodes, reason = fields[:4]
            for single in _expand_ids(job_id):
                jobs[single] = QueuedJob(single, state, nodes, reason, _SEPARATOR.join(fields[4:]))
    return jobs


def find_task(jobs: Iterable[str], index: int) -> str:
    """The job id of an array's task, or of a job that is alone; empty when there is none."""
    wanted = {job_id for job_id in jobs if job_id.endswith(f"_{index}") or ("_" not in job_id and index == 0)}
    return next(iter(sorted(wanted)), "")


def base_of(job_id: str) -> str:
    """The array's own id of `12_3`."""
    return job_id.partition("_")[0]


def _run_squeue(selection: list[str]) -> dict[str, QueuedJob]:
    # --states=all also shows, for MinJobAge seconds (300 by default), how a job ended; --all, hidden partitions.
    options = ["--noheader", "--array", "--all", "--states=all", f"--format={_SEPARATOR.join(_FIELDS)}"]
    finished = run_command(["squeue", *options, *selection], timeout_s=_TIMEOUT_S, check=False)
    if finished.code == 0:
        return parse_queue(finished.stdout)
    if _UNKNOWN_JOB in finished.stderr:
        return {}
    raise CommandError(describe_failure(finished))


def _expand_ids(job_id: str) -> list[str]:
    # Old versions ignore --array for tasks that wait, and print `12_[0-3,5%2]`.
    match = _ARRAY_RANGE.fullmatch(job_id)
    if match is None:
        return [job_id]
    ids = []
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        ids += [f"{match[1]}_{index}" for index in range(int(first), int(last or first) + 1)]
    return ids
