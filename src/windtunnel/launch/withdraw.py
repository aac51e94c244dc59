"""A user's own word on trials: `retry` withdraws verdicts, `cancel` ends jobs. Both are events in the ledgers.

A wish is written before anything is done about it, so that a process killed between leaves nothing half said.
"""

import functools
import getpass
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from windtunnel.errors import CommandError
from windtunnel.launch.mates import is_wanted
from windtunnel.launch.onhost import stop_process
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import find_end, find_job_id, find_verdict_event
from windtunnel.ledger.story import Submission, Succession, find_begun, find_submission, find_succession
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import FINAL, PARTIAL_SWEEP, Verdict
from windtunnel.slurm.queue import base_of, cancel_jobs, find_task, read_queue_by_name


class Step(StrEnum):
    """What `cancel` does about one trial."""

    NONE = "NONE"
    WISH = "WISH"
    SLURM = "SLURM"
    PROCESS = "PROCESS"
    SEARCH = "SEARCH"


@dataclass(frozen=True)
class Cancelling:
    """One trial's part of a cancellation; `words` tell the user, with `{job}` where a search finds it."""

    step: Step
    words: str
    job_id: str = ""
    submission: Submission | None = None
    succession: Succession | None = None
    """The job behind it, which is cancelled before it."""


def withdraw_trials(store: Path, trials: Sequence[PlannedTrial], *, reason: str, sweep: Path | None = None) -> None:
    """Let the next sweep run `trials` again with fresh budgets, whatever their verdicts were.

    A trial whose DONE.json is valid stays COMPLETED; attempts, checkpoints and earlier events are kept. `sweep`
    is the study's `sweep.json`: it becomes `sweep.partial.json`, so that the workflow runs the stage again.
    Raises BusyError, naming it, while a driver of that study lives.
    """
    with _hold(sweep):
        # First the file: verdicts withdrawn under a published sweep would never be looked at again.
        if sweep is not None and sweep.exists():
            sweep.rename(sweep.with_name(PARTIAL_SWEEP))
        for trial in trials:
            folder = trial_folder(store, trial.id)
            facts = read_facts(folder, steps=trial.steps)
            if plan_withdrawal(facts):
                _append(folder, facts, "withdrawn", reason=reason)


def plan_withdrawal(facts: TrialFacts) -> bool:
    """Whether there is something to withdraw: it has events, and is neither done nor under way."""
    return bool(facts.events or facts.attempts) and facts.outcome is None and facts.holder is None


def cancel_trials(store: Path, trials: Sequence[PlannedTrial], *, study: str, jobs_dir: Path) -> dict[str, str]:
    """End the jobs of `trials` and keep CANCELLED as their verdict until the next sweep; what was done, by trial id.

    A driver at work sees the wish in the ledgers, and submits none of these trials again. A job of several trials
    goes on while it has others to run, whichever study submitted it. `jobs_dir` is the study's own folder of jobs.
    Raises CommandError when Slurm does not answer, or refuses; the wishes are kept even then.
    """
    plans = {trial.id: _wish(trial_folder(store, trial.id), trial, study=study) for trial in trials}
    # A thousand trials may be of one submission: its queue is read once.
    read_queue = functools.cache(read_queue_by_name)
    sought = {trial_id: plan for trial_id, plan in plans.items() if plan.step in (Step.SLURM, Step.SEARCH)}
    jobs = {trial_id: _find_job(plan, read_queue) for trial_id, plan in sought.items()}
    shared = {
        trial_id
        for trial_id, plan in sought.items()
        if plan.submission is not None and is_wanted(store, plan.submission, jobs_dir=jobs_dir, but=plans)
    }
    alone = {job_id for job_id in jobs.values() if job_id} - {jobs[trial_id] for trial_id in shared}
    behind = {job_id for plan in plans.values() for job_id in _list_successors(plan, read_queue)}
    problem = cancel_jobs([*sorted(behind), *sorted(alone - behind)])
    if problem:
        raise CommandError(f"the wish to cancel is written down, but Slurm refused:\n{problem}")
    return {each: _carry_out(plan, jobs.get(each, ""), shared=each in shared) for each, plan in plans.items()}


def plan_cancelling(facts: TrialFacts) -> Cancelling:
    """What to do about one trial, from its records alone."""
    if facts.outcome is not None and facts.holder is None:
        return Cancelling(Step.NONE, "already COMPLETED: nothing to cancel")
    told = find_verdict_event(facts)
    end = find_end(facts)
    verdict = told.details["verdict"] if told is not None else end.verdict if end is not None else None
    if facts.holder is None and (verdict in FINAL or verdict == Verdict.CANCELLED):
        return Cancelling(Step.NONE, f"already {verdict}: nothing to cancel")
    submission, succession = find_submission(facts.events), find_succession(facts.events)
    if submission is not None:
        return Cancelling(Step.SEARCH, "", submission=submission)
    job_id = "" if told is not None and facts.holder is None else find_job_id(facts)
    if not job_id:
        words = "not in the queue: a driver at work leaves it, the next sweep runs it"
        return Cancelling(Step.WISH, words, succession=succession)
    if not base_of(job_id).isdecimal():
        return Cancelling(Step.PROCESS, "", job_id=job_id)
    return Cancelling(Step.SLURM, "", job_id, find_begun(facts.events), succession)


@contextmanager
def _hold(sweep: Path | None) -> Iterator[None]:
    if sweep is None:
        yield
        return
    lease = take_lease(sweep.parent / ".lease", f"study {sweep.parent.name}")
    try:
        yield
    finally:
        lease.release()


def _wish(folder: TrialFolder, trial: PlannedTrial, *, study: str) -> Cancelling:
    facts = read_facts(folder, steps=trial.steps)
    plan = plan_cancelling(facts)
    if plan.step == Step.NONE:
        return plan
    folder.path.mkdir(parents=True, exist_ok=True)
    _append(folder, facts, "cancelling", study=study, user=getpass.getuser())
    # A driver that submits it meanwhile sees the wish once it knows the job's id; an id known by now is seen here.
    return plan_cancelling(replace(facts, events=tuple(read_events(folder.path))))


def _find_job(plan: Cancelling, read_queue: Callable[[str], Iterable[str]]) -> str:
    if plan.job_id or plan.submission is None:
        return plan.job_id
    # Where there is none, the driver died, or is at it, between the submission and its answer.
    return find_task(read_queue(plan.submission.name), plan.submission.index)


def _list_successors(plan: Cancelling, read_queue: Callable[[str], Iterable[str]]) -> list[str]:
    succession = plan.succession
    if succession is None or succession.job_id:
        return [succession.job_id] if succession is not None else []
    # Its answer was lost: of its name there are only the trial's own jobs.
    return [job_id for job_id in read_queue(succession.name) if job_id != plan.job_id]


def _carry_out(plan: Cancelling, job_id: str, *, shared: bool) -> str:
    if shared:
        return f"left out of job {job_id}, which goes on for its others; if it runs already, it runs to its end"
    if plan.step in (Step.SLURM, Step.SEARCH):
        name = plan.submission.name if plan.submission is not None else ""
        missing = f"no job of submission {name} is in the queue: should one come, the driver that finds it cancels it"
        return f"cancelled job {job_id}" if job_id else missing
    if plan.step == Step.PROCESS:
        host, _, pid = plan.job_id.rpartition(":")
        here = stop_process(plan.job_id)
        return f"stopped process {pid}" if here else f"process {pid} does not run here: cancel it on host {host}"
    return plan.words


def _append(folder: TrialFolder, facts: TrialFacts, kind: str, **details: str) -> None:
    append_event(folder.path, kind, attempt=facts.attempts[-1] if facts.attempts else 0, **details)
