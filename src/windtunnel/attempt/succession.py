"""A job that waited behind its trial's last one: whether anything is left for it to do, with or without a driver.

It decides as a driver would, from the ledger and from what Slurm says of the job before; where these cannot tell,
it leaves the trial to a driver.
"""

import os
import socket
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from windtunnel.attempt.grant import Grant
from windtunnel.attempt.settle import append_or_say
from windtunnel.checkpoints.reached import read_saved_step
from windtunnel.errors import CommandError
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import bury_holder
from windtunnel.ledger.reconcile import (
    UNSEEN,
    JobSight,
    Phase,
    Standing,
    find_end,
    find_job_id,
    find_verdict_event,
    is_outlived,
    reconcile,
)
from windtunnel.ledger.retries import Ending, decide_retry, read_retried
from windtunnel.ledger.story import find_begun, find_succession, find_wish
from windtunnel.records.trial import AttemptEnd, TrialConfig, Verdict
from windtunnel.settings.sweep import RetrySettings
from windtunnel.slurm.queue import QueuedJob, read_queue
from windtunnel.slurm.states import sight_of_state

ReadQueue = Callable[[Collection[str]], Mapping[str, QueuedJob]]
_ENDED_WITHIN_S, _POLL_S = 60.0, 1.0


@dataclass(frozen=True)
class Turn:
    """Whether the job goes on with the trial, and why not."""

    runs: bool
    standing: Standing
    """Of the trial before it."""
    why: str = ""


def take_turn(
    folder: TrialFolder, config: TrialConfig, grant: Grant, *, life_at: float, read_jobs: ReadQueue = read_queue
) -> AttemptEnd | None:
    """None when this successor goes on with the trial, whose lease it holds; the end that it leaves, otherwise.

    `life_at` is the trial's last sign of life before the lease was taken, in seconds since 1970.
    """
    facts = replace(read_facts(folder, steps=config.trial.steps), holder=None, life_at=life_at)
    if find_job_id(facts) == grant.job_id:
        return None  # a driver made it the trial's present job, or Slurm started it again
    problem = find_hindrance(facts, job_name=os.environ.get("SLURM_JOB_NAME", ""), hosts=grant.hosts)
    sight = UNSEEN if problem else _see_before(facts, read_jobs)
    turn = decide_turn(facts, sight, step=read_saved_step(folder), now=time.time())
    if problem or not turn.runs:
        return _step_aside(facts, turn, problem or turn.why, grant)
    if find_verdict_event(facts) is None:
        standing = turn.standing
        told = {"verdict": standing.verdict, "evidence": standing.evidence, "job_id": find_job_id(facts)}
        last = facts.attempts[-1] if facts.attempts else 0
        step = read_saved_step(folder)
        append_or_say(folder, "verdict", attempt=last, **told, life_at=life_at, step=step, again=True, by="successor")
    return None


def find_hindrance(facts: TrialFacts, *, job_name: str, hosts: Collection[str]) -> str:
    """Why a successor of that job name, on these hosts, has no turn whatever the job before it came to; or empty."""
    begun, end = find_begun(facts.events), find_end(facts)
    if begun is None or begun.name != job_name:
        return f"the trial was submitted anew since, as {begun.name if begun is not None else 'nothing known'}"
    if find_wish(facts.events) is not None:
        return "somebody cancelled the trial"
    blamed = {fault.node for fault in end.node_faults} & set(hosts) if end is not None else set()
    return (
        f"node {min(blamed)} was found unfit by the attempt before: another job is left to a driver" if blamed else ""
    )


def decide_turn(facts: TrialFacts, before: JobSight, *, step: int, now: float) -> Turn:
    """Whether a successor goes on after the job `before`, which Slurm says has ended. Pure.

    `step` is that of the newest checkpoint.
    """
    standing = reconcile(facts, before, now=now, lost_after_s=float("inf"))
    if standing.phase != Phase.ENDED or standing.verdict is None:
        return Turn(False, standing, "it is not known how the job before it ended: that is left to a driver")
    told = find_verdict_event(facts)
    if told is not None and not told.details.get("again", True):
        return Turn(False, standing, "its driver does not try it again")
    succession = find_succession(facts.events)
    budgets = RetrySettings.model_validate(dict(succession.retries) if succession is not None else {})
    retry = decide_retry(Ending(standing.verdict, step), read_retried(facts.events, facts.ends), budgets)
    return Turn(retry.again, standing, retry.words or "after that nothing is tried again by itself")


def free_dead_holder(folder: TrialFolder, grant: Grant, *, read_jobs: ReadQueue = read_queue) -> bool:
    """Free the lease of a supervisor whose job, another than this one, has ended, and say whether that was so.

    Slurm knows it before the heartbeat is stale.
    """
    facts = read_facts(folder, steps=0) if grant.slurm else None
    holder = facts.holder if facts is not None else None
    if facts is None or holder is None or not holder.job_id or holder.job_id == grant.job_id:
        return False
    sight = _see(holder.job_id, read_jobs)
    dead = is_outlived(facts, sight, holder.job_id, here=socket.gethostname())
    return dead and bury_holder(folder.lease, holder)


def _see_before(facts: TrialFacts, read_jobs: ReadQueue) -> JobSight:
    """The end of the job before, waited for while Slurm cleans up after it: the end itself is certain by now."""
    job_id = find_job_id(facts)
    if not job_id or find_end(facts) is not None or find_verdict_event(facts) is not None:
        return UNSEEN  # the records tell
    deadline = time.monotonic() + _ENDED_WITHIN_S
    while (sight := _see(job_id, read_jobs)).phase != Phase.ENDED and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return sight


def _see(job_id: str, read_jobs: ReadQueue) -> JobSight:
    try:
        job = read_jobs([job_id]).get(job_id)
    except CommandError:
        return UNSEEN
    return sight_of_state(job.state, job_id=job_id) if job is not None else UNSEEN


def _step_aside(facts: TrialFacts, turn: Turn, why: str, grant: Grant) -> AttemptEnd:
    attempt = facts.attempts[-1] if facts.attempts else 0
    verdict = turn.standing.verdict or Verdict.LOST
    evidence = f"{turn.standing.evidence or 'no end is known'}; nothing was run: {why}"
    return AttemptEnd(attempt, 0, verdict, evidence, grant.hosts, grant.job_id, 0.0)
