"""Several trials in one job, one after the other. Each has its own lease, attempts and verdict; none costs another.

Their ledgers tell which still wait for their turn, so that after the job's end they are submitted again, and a job
that is started again goes on with those that have not ended.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from windtunnel.attempt.ranks import catch_stop
from windtunnel.attempt.run import run_attempt
from windtunnel.attempt.settle import append_or_say
from windtunnel.errors import WindtunnelError
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers
from windtunnel.ledger.log import Event, read_events
from windtunnel.ledger.story import find_wish
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.slurm.job import read_job_id

_GOES_ON = frozenset({Verdict.PREEMPTED, Verdict.NODE_FAIL})
"""Ends of a trial in this very job after which the job, started again, runs it again."""


def run_pack(trial_dirs: Sequence[Path], *, rank_command: Sequence[str] = (), succeeds: bool = False) -> int:
    """Run the next attempt of each trial in turn; one alone is simply run. Returns 0 when all of these completed.

    A signal ends the trial under way, and so does an unfit node; those after it are left to the next job.
    Of one that `succeeds` another job of its trial, see `run_attempt`.
    """
    if len(trial_dirs) == 1:
        return 0 if _tell(run_attempt(trial_dirs[0], rank_command=rank_command, succeeds=succeeds)) else 1
    job_id = read_job_id(os.environ)
    folders = [TrialFolder(path.resolve()) for path in trial_dirs]
    waiting = [folder for folder in folders if is_due(folder, job_id)]
    for folder in waiting[1:]:  # the first one's turn has come: whatever hinders it is its own
        append_or_say(folder, "waiting", attempt=0, job_id=job_id)
    completed = len(folders) - len(waiting)
    with catch_stop() as stop:
        for folder in waiting:
            if stop.signum is not None:
                break
            try:
                if not is_due(folder, job_id):  # any more, after the others' turns
                    completed += folder.done.exists()
                    continue
                end = run_attempt(folder.path, rank_command=rank_command, turn=stop)
                completed += _tell(end, folder)
                if end.node_faults:  # the others would meet the same: another job is theirs
                    break
            except (WindtunnelError, OSError) as error:
                print(f"trial {folder.path.name}: {error}", file=sys.stderr, flush=True)
    return 0 if completed == len(folders) else 1


def is_due(folder: TrialFolder, job_id: str) -> bool:
    """Whether the job runs the trial: it is not done, cancelled or another job's, and did not end here for good."""
    events = read_events(folder.path)
    if folder.done.exists() or _went_elsewhere(events, job_id) or find_wish(events) is not None:
        return False
    numbers = read_attempt_numbers(folder)
    end = read_end(folder.end(numbers[-1])) if numbers else None
    return end is None or end.job_id != job_id or end.verdict in _GOES_ON


def _went_elsewhere(events: Sequence[Event], job_id: str) -> bool:
    # The driver may not have written this job's id down yet: its submission is then the last word.
    last = next((event for event in reversed(events) if event.kind in ("submitting", "submitted")), None)
    return last is not None and last.kind == "submitted" and last.details.get("job_id") != job_id


def _tell(end: AttemptEnd, folder: TrialFolder | None = None) -> bool:
    who = f"trial {folder.path.name}, " if folder is not None else ""
    print(f"{who}attempt {end.attempt}: {end.verdict}: {end.evidence}", flush=True)
    return end.verdict is Verdict.COMPLETED
