"""sacct: how jobs ended that the controller has forgotten. A site without accounting is no error."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windtunnel.errors import CommandError
from windtunnel.process import describe_failure, run_command
from windtunnel.slurm.queue import base_of

_TIMEOUT_S = 60.0
_JOBS_AT_ONCE = 1000
_SLACK_S = 1.0
_FIELDS = ("JobID", "State", "ExitCode", "ElapsedRaw", "NodeList", "End", "Reason")
_DISABLED = "accounting storage is disabled"


@dataclass(frozen=True)
class AccountedJob:
    """A line of sacct for a whole job; of a requeued one, its last run."""

    job_id: str
    state: str
    """With sacct's addition, such as `CANCELLED by 1000`."""
    exit_code: str
    """`code:signal`."""
    elapsed_s: int
    nodes: str
    ended_at: float
    """Seconds since 1970; 0 when it has not ended."""
    reason: str


def read_accounting(job_ids: Iterable[str]) -> dict[str, AccountedJob] | None:
    """The jobs among `job_ids` that accounting knows, by id; None where there is no accounting.

    Raises CommandError when it does not answer. Of a requeued job, sacct shows the run submitted last.
    """
    wanted = sorted({base_of(job_id) for job_id in job_ids}, key=int)
    jobs: dict[str, AccountedJob] = {}
    for start in range(0, len(wanted), _JOBS_AT_ONCE):
        text = _run_sacct([f"--jobs={','.join(wanted[start : start + _JOBS_AT_ONCE])}"])
        if text is None:
            return None
        jobs |= parse_accounting(text)
    return jobs


def read_accounting_by_name(names: Iterable[str]) -> dict[str, dict[str, AccountedJob]] | None:
    """The jobs of each name that accounting knows, by id; None where there is no accounting.

    Raises CommandError when it does not answer.
    """
    wanted = sorted(names)
    found: dict[str, dict[str, AccountedJob]] = {name: {} for name in wanted}
    for start in range(0, len(wanted), _JOBS_AT_ONCE):
        text = _run_sacct([f"--name={','.join(wanted[start : start + _JOBS_AT_ONCE])}"], name=True)
        if text is None:
            return None
        for line in text.splitlines():
            name, _, rest = line.partition("|")
            found.setdefault(name, {}).update(parse_accounting(rest))
    return found


def parse_accounting(text: str) -> dict[str, AccountedJob]:
    """Jobs of `sacct --noheader --parsable2 --allocations` in our format, by id; steps are left out."""
    jobs = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) >= len(_FIELDS) and "." not in fields[0]:
            job_id, state, exit_code, elapsed, nodes, end = fields[:6]
            elapsed_s = int(elapsed) if elapsed.isdecimal() else 0
            ended_at = float(end) if end.isdecimal() else 0.0
            reason = "|".join(fields[6:])
            jobs[job_id] = AccountedJob(job_id, state, exit_code, elapsed_s, nodes, ended_at, reason)
    return jobs


def _run_sacct(selection: Sequence[str], *, name: bool = False) -> str | None:
    fields = ("JobName", *_FIELDS) if name else _FIELDS
    argv = ["sacct", "--noheader", "--parsable2", "--allocations", f"--format={','.join(fields)}"]
    # Without a start time sacct looks at today only.
    argv += ["--starttime=now-30days", *selection]
    if shutil.which(argv[0]) is None:
        return None
    finished = run_command(argv, timeout_s=_TIMEOUT_S, env={"SLURM_TIME_FORMAT": "%s"}, check=False)
    if not finished.code:
        return finished.stdout
    if _DISABLED in finished.stderr.lower():
        return None
    raise CommandError(describe_failure(finished))


def read_run_states(raw_job_id: str, *, since: float, timeout_s: float) -> list[str] | None:
    """States of the runs of a job that ended at `since` or later, newest first; None where there is no accounting.

    Raises CommandError when it does not answer in time.
    """
    if shutil.which("sacct") is None:
        return None
    argv = ["sacct", f"--jobs={raw_job_id}", "--duplicates", "--allocations", "--noheader", "--parsable2"]
    argv += ["--format=JobIDRaw,Start,End,State"]
    finished = run_command(argv, timeout_s=timeout_s, env={"SLURM_TIME_FORMAT": "%s"}, check=False)
    if finished.code != 0:
        return None
    return parse_run_states(finished.stdout, raw_job_id, since=since)


def parse_run_states(text: str, raw_job_id: str, *, since: float) -> list[str]:
    """The states among lines of `JobIDRaw|Start|End|State` with times in seconds."""
    runs = []
    for line in text.splitlines():
        job_id, start, end, state = (*line.split("|"), "", "", "", "")[:4]
        # Slurm's clock is in whole seconds, and the run may have begun before its script did.
        if job_id == raw_job_id and end.isdecimal() and start.isdecimal() and float(end) >= since - _SLACK_S:
            runs.append((float(end), state))
    return [state for _, state in sorted(runs, reverse=True)]
