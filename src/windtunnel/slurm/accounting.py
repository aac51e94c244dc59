"""sacct: how jobs ended that the controller has forgotten. A site without accounting is no error."""

from collections.abc import Iterable
from dataclasses import dataclass

from windtunnel.errors import CommandError
from windtunnel.process import run_command
from windtunnel.slurm.queue import base_of

_TIMEOUT_S = 60.0
_FIELDS = ("JobID", "State", "ExitCode", "ElapsedRaw", "NodeList", "Reason")


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
    reason: str


def read_accounting(job_ids: Iterable[str]) -> dict[str, AccountedJob] | None:
    """The jobs among `job_ids` that accounting knows, by id; None where there is no accounting."""
    wanted = sorted({base_of(job_id) for job_id in job_ids}, key=int)
    if not wanted:
        return {}
    argv = ["sacct", "--noheader", "--parsable2", "--allocations", f"--format={','.join(_FIELDS)}"]
    # Without a start time sacct looks at today only.
    argv += ["--starttime=now-30days", f"--jobs={','.join(wanted)}"]
    try:
        return parse_accounting(run_command(argv, timeout_s=_TIMEOUT_S).stdout)
    except CommandError:
        return None


def parse_accounting(text: str) -> dict[str, AccountedJob]:
    """Jobs of `sacct --noheader --parsable2 --allocations` in our format, by id; steps are left out."""
    jobs = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) >= len(_FIELDS) and "." not in fields[0]:
            job_id, state, exit_code, elapsed, nodes = fields[:5]
            elapsed_s = int(elapsed) if elapsed.isdecimal() else 0
            jobs[job_id] = AccountedJob(job_id, state, exit_code, elapsed_s, nodes, "|".join(fields[5:]))
    return jobs
