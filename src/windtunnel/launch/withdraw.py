"""A user's own word on trials: `retry` withdraws verdicts, `cancel` ends jobs. Both are events in the ledgers.

A wish is written before anything is done about it, so that a process killed between leaves nothing half said.
"""

import functools
import getpass
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from windtunnel.errors import CommandError
from windtunnel.launch.onhost import stop_process
from windtunnel.launch.packs import find_task, read_packs
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import Event, append_event, read_events
from windtunnel.ledger.reconcile import find_end, find_job_id, find_submission, find_verdict_event
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import FINAL, PARTIAL_SWEEP, Verdict
from windtunnel.slurm.queue import base_of, cancel_jobs, read_queue_by_name


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
    submission: str = ""
    index: int = 0


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
    goes on while it has others to run. `jobs_dir` is the study's own folder of jobs. Raises CommandError when Slurm
    does not answer, or refuses; the wishes are kept even then.
    """
    plans: dict[str, Cancelling] = {}
    for trial in trials:
        folder = trial_folder(store, trial.id)
        facts = read_facts(folder, steps=trial.steps)
        plans[trial.id] = plan_cancelling(facts)
        if plans[trial.id].step != Step.NONE:
            folder.path.mkdir(parents=True, exist_ok=True)
            _append(folder, facts, "cancelling", study=study, user=getpass.getuser())
    # A thousand trials may be of one submission: its queue and its packs are read once.
    read_queue = functools.cache(read_queue_by_name)
    read_mates = functools.cache(functools.partial(read_packs, jobs_dir))
    sought = {trial_id: plan for trial_id, plan in plans.items() if plan.step in (Step.SLURM, Step.SEARCH)}
    jobs = {trial_id: _find_job(plan, read_queue) for trial_id, plan in sought.items()}
    wanted = {trial.id for trial in trials}
    shared = {trial_id for trial_id, plan in sought.items() if _has_others(plan, read_mates, store, wanted)}
    alone = {job_id for job_id in jobs.values() if job_id} - {jobs[trial_id] for trial_id in shared}
    problem = cancel_jobs(sorted(alone))
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
    submission = find_submission(facts)
    if submission is not None:
        return Cancelling(Step.SEARCH, "", submission=submission[0], index=submission[1])
    job_id = "" if told is not None and facts.holder is None else find_job_id(facts)
    if not job_id:
        return Cancelling(Step.WISH, "not in the queue: a driver at work leaves it, the next sweep runs it")
    if not base_of(job_id).isdecimal():
        return Cancelling(Step.PROCESS, "", job_id=job_id)
    begun = next((each.details for each in reversed(facts.events) if each.kind == "submitting"), {})
    return Cancelling(Step.SLURM, "", job_id, str(begun.get("submission", "")), int(begun.get("index", 0)))


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


def _find_job(plan: Cancelling, read_queue: Callable[[str], Iterable[str]]) -> str:
    # Where there is none, the driver died, or is at it, between the submission and its answer.
    return plan.job_id or find_task(read_queue(plan.submission), plan.index)


def _has_others(
    plan: Cancelling, read_mates: Callable[[str], Sequence[Sequence[str]]], store: Path, wanted: Collection[str]
) -> bool:
    """Whether the job is also to run trials that nobody wants to cancel."""
    packs = read_mates(plan.submission)
    ids = [each for each in packs[plan.index] if each not in wanted] if plan.index < len(packs) else []
    return any(_is_unended(read_events(trial_folder(store, trial_id).path)) for trial_id in ids)


def _is_unended(events: Sequence[Event]) -> bool:
    kinds = [event.kind for event in events if event.kind != "cancelling"]
    return bool(kinds) and kinds[-1] in ("submitting", "submitted", "waiting", "started")


def _carry_out(plan: Cancelling, job_id: str, *, shared: bool) -> str:
    if shared:
        return f"left out of job {job_id}, which goes on for its others; if it runs already, it runs to its end"
    if plan.step in (Step.SLURM, Step.SEARCH):
        return f"cancelled job {job_id}" if job_id else f"no job of submission {plan.submission} is in the queue"
    if plan.step == Step.PROCESS:
        host, _, pid = plan.job_id.rpartition(":")
        here = stop_process(plan.job_id)
        return f"stopped process {pid}" if here else f"process {pid} does not run here: cancel it on host {host}"
    return plan.words


def _append(folder: TrialFolder, facts: TrialFacts, kind: str, **details: str) -> None:
    append_event(folder.path, kind, attempt=facts.attempts[-1] if facts.attempts else 0, **details)
