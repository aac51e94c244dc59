"""What a trial's records, its job and its processes together say of it. Pure: the same facts, the same answer.

Success is never guessed: only a DONE.json of our own that validates is COMPLETED. What the scheduler
says merely explains an end that our records do not.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import ASIDE, Event
from windtunnel.ledger.story import find_last_event, find_wish
from windtunnel.records.trial import AttemptEnd, Verdict


class Phase(StrEnum):
    """Where a trial, or its job, stands."""

    NEW = "NEW"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    ENDED = "ENDED"
    UNSURE = "UNSURE"


@dataclass(frozen=True)
class JobSight:
    """What the scheduler or the process table says of a job; UNSURE when it does not know it."""

    phase: Phase
    verdict: Verdict | None = None
    """How it ended, where that explains a failure; a job's own success proves nothing."""
    evidence: str = ""
    """Of a job that waits: why."""
    ended_at: float = 0.0
    """When its end was first seen, in seconds since 1970; 0 for long ago, or for not ended."""
    hosts: tuple[str, ...] = ()
    """Where it runs or ran, as far as is known."""


@dataclass(frozen=True)
class Standing:
    """A trial's phase; with ENDED its verdict and why."""

    phase: Phase
    verdict: Verdict | None = None
    evidence: str = ""


UNSEEN = JobSight(Phase.UNSURE)
_OWN_FAULT = frozenset({Verdict.FAILED, Verdict.OOM})
# A supervisor that was told to stop does not know by whom; the scheduler does.
_STOPPED = frozenset({Verdict.PREEMPTED, Verdict.TIMEOUT, Verdict.CANCELLED, Verdict.NODE_FAIL, Verdict.LOST})
_SUBMITTED = ("submitting", "submitted", "postponed", "withdrawn")
_UNSUBMITTED = ("", "postponed", "withdrawn")


def reconcile(
    facts: TrialFacts,
    job: JobSight,
    *,
    now: float,
    lost_after_s: float,
    settle_s: float = 0.0,
    limit_s: float = float("inf"),
    in_flight_s: float = 0.0,
) -> Standing:
    """The standing of a trial at `now`.

    `job` is the sight of the job of `find_job_id`. So that every wait ends, a trial is LOST without any sign of
    life for `lost_after_s`, without records of its own `settle_s` after its job's end, and when its supervisor
    is still there `limit_s` after the start, though its job is not. For `in_flight_s` a submission without an
    answer may still be taken, whatever is wished.
    """
    if _is_in_flight(facts, job, now - in_flight_s):
        return Standing(Phase.UNSURE, evidence="being submitted")
    standing = _weigh(facts, job, now=now, lost_after_s=lost_after_s, settle_s=settle_s, limit_s=limit_s)
    wish = find_wish(facts.events)
    if wish is None or not (standing.verdict in _STOPPED or _is_unsubmitted(standing, facts)):
        return standing
    at = datetime.fromtimestamp(wish.at, UTC).isoformat(sep=" ", timespec="seconds")
    told = f"cancelled by {wish.details.get('user', 'someone')} on host {wish.host} at {at}"
    known = told in standing.evidence  # a driver wrote it down already
    return _ended(Verdict.CANCELLED, "; ".join(filter(None, ("" if known else told, standing.evidence))))


def find_job_id(facts: TrialFacts) -> str:
    """Job of the newest submission or start; empty while none is known, or when it came to nothing since."""
    for event in reversed(facts.events):
        if event.kind in (*_UNSUBMITTED, "submitting"):
            return ""
        # Not by an end: that of a supervisor of an earlier job may come late, and a start has named its job.
        if event.kind in ("submitted", "waiting", "started") and event.details.get("job_id"):
            return str(event.details["job_id"])
    return ""


def find_end(facts: TrialFacts) -> AttemptEnd | None:
    """END.json of the newest attempt, unless the trial was submitted again, or withdrawn, since."""
    if not facts.attempts or _last_kind(facts) in (*_SUBMITTED, "waiting"):
        return None
    return facts.ends.get(facts.attempts[-1])


def find_verdict_event(facts: TrialFacts) -> Event | None:
    """The verdict that a driver wrote over the newest attempt, if nothing happened since."""
    return find_last_event(facts.events) if _last_kind(facts) == "verdict" else None


def is_outlived(facts: TrialFacts, job: JobSight, job_id: str, *, here: str) -> bool:
    """Whether the live holder's heartbeat is a dead one's last: Slurm says that its very job has ended.

    Not after a node's failure, where Slurm only lost sight of a node on which processes may go on; and a
    process of this host, `here`, is known by its pid.
    """
    holder = facts.holder
    if holder is None or not job_id or holder.job_id != job_id or holder.host == here:
        return False
    return job.phase == Phase.ENDED and job.verdict != Verdict.NODE_FAIL


def count_node_seconds(facts: TrialFacts) -> float:
    """Nodes times wall seconds over all attempts; one without END.json counts to its last sign of life."""
    return sum(_attempt_node_seconds(facts, number) for number in facts.attempts)


def _weigh(
    facts: TrialFacts, job: JobSight, *, now: float, lost_after_s: float, settle_s: float, limit_s: float
) -> Standing:
    alive = job.phase in (Phase.QUEUED, Phase.RUNNING)
    overdue = not alive and _is_overdue(facts, now - limit_s)
    if facts.outcome is not None and facts.holder is not None and find_end(facts) is None and not overdue:
        return Standing(Phase.RUNNING, evidence="done; its ranks are ending")
    if facts.outcome is not None:
        done = facts.outcome
        return _ended(Verdict.COMPLETED, f"DONE.json of attempt {done.attempt}: {done.steps} steps")
    end = find_end(facts)
    if end is not None and end.verdict in _OWN_FAULT:
        return _ended(end.verdict, end.evidence)
    if facts.holder is not None:
        return _judge_overdue(facts, limit_s) if overdue else Standing(Phase.RUNNING)
    if job.phase == Phase.RUNNING and _last_kind(facts) == "waiting":
        return Standing(Phase.QUEUED, evidence="it waits for its turn in a job that runs")
    if alive:
        return Standing(job.phase, evidence=job.evidence)
    earlier = find_verdict_event(facts)
    if earlier is not None:
        return _ended(Verdict(earlier.details["verdict"]), str(earlier.details.get("evidence", "")))
    if end is not None:
        return _judge_end(facts, end, job)
    if job.phase == Phase.ENDED and now - job.ended_at < settle_s:
        return Standing(Phase.RUNNING, evidence="its job ended: its records may still be on the way")
    return _judge_silence(facts, job, silent_s=now - facts.life_at, lost_after_s=lost_after_s)


def _is_in_flight(facts: TrialFacts, job: JobSight, after: float) -> bool:
    last = find_last_event(facts.events)
    begun = last is not None and last.kind == "submitting" and last.at > after
    return begun and job.phase == Phase.UNSURE and facts.outcome is None and facts.holder is None


def _is_overdue(facts: TrialFacts, before: float) -> bool:
    started = next((event for event in reversed(facts.events) if event.kind == "started"), None)
    return facts.holder is not None and started is not None and started.at < before


def _judge_overdue(facts: TrialFacts, limit_s: float) -> Standing:
    assert facts.holder is not None
    holder = f"pid {facts.holder.pid} on host {facts.holder.host}"
    told = f"its supervisor ({holder}) is there more than {limit_s:.0f} s after its start, past any limit: stop it"
    return _ended(Verdict.LOST, told)


def _judge_end(facts: TrialFacts, end: AttemptEnd, job: JobSight) -> Standing:
    if end.verdict == Verdict.COMPLETED:
        problem = facts.done_problem or "there is no DONE.json"
        return _ended(Verdict.LOST, f"attempt {end.attempt} said COMPLETED, but {problem}")
    if job.verdict in _STOPPED and end.verdict in _STOPPED and job.verdict is not None:
        return _ended(job.verdict, f"{end.evidence}; {job.evidence}")
    return _ended(end.verdict, end.evidence)


def _judge_silence(facts: TrialFacts, job: JobSight, *, silent_s: float, lost_after_s: float) -> Standing:
    if _last_kind(facts) in _UNSUBMITTED and (_last_kind(facts) or not facts.attempts):
        return Standing(Phase.NEW)
    if _last_kind(facts) == "waiting" and job.phase == Phase.ENDED:
        return _judge_unturned(job)
    if _last_kind(facts) == "submitting" and job.phase == Phase.UNSURE and silent_s > lost_after_s:
        return Standing(Phase.NEW, evidence="its last submission came to nothing")
    records = f"it left neither DONE.json nor END.json{f' ({facts.done_problem})' if facts.done_problem else ''}"
    if job.phase == Phase.ENDED:
        return _ended(job.verdict or Verdict.LOST, f"{job.evidence or 'its job ended'}; {records}")
    if silent_s > lost_after_s:
        told = f"{job.evidence}; " if job.evidence else ""
        return _ended(Verdict.LOST, f"{told}no job, no live process and no record for {silent_s:.0f} s; {records}")
    return Standing(Phase.UNSURE, evidence=job.evidence)


def _judge_unturned(job: JobSight) -> Standing:
    # Whatever ended the job, it was not this trial.
    verdict = job.verdict if job.verdict == Verdict.CANCELLED else Verdict.PREEMPTED
    return _ended(verdict, f"{job.evidence or 'its job ended'}, before the trial's turn came")


def _is_unsubmitted(standing: Standing, facts: TrialFacts) -> bool:
    return standing.phase in (Phase.NEW, Phase.UNSURE) and not find_job_id(facts)


def _attempt_node_seconds(facts: TrialFacts, number: int) -> float:
    end = facts.ends.get(number)
    if end is not None:
        return len(set(end.hosts)) * end.wall_s
    started = next((event for event in facts.events if event.kind == "started" and event.attempt == number), None)
    if started is None:
        return 0.0
    hosts: list[str] = started.details.get("hosts") or [started.host]
    return len(set(hosts)) * max(0.0, _last_life(facts, started) - started.at)


def _last_life(facts: TrialFacts, started: Event) -> float:
    later = [event for event in facts.events if event.at > started.at and event.kind not in ASIDE]
    judged = next((event for event in later if event.kind == "verdict" and event.attempt == started.attempt), None)
    if judged is not None and "life_at" in judged.details:
        return float(judged.details["life_at"])
    return min([facts.life_at, *(event.at for event in later)])


def _last_kind(facts: TrialFacts) -> str:
    last = find_last_event(facts.events)
    return last.kind if last is not None else ""


def _ended(verdict: Verdict, evidence: str) -> Standing:
    return Standing(Phase.ENDED, verdict, evidence)
