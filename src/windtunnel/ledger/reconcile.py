"""What a trial's records, its job and its processes together say of it. Pure: the same facts, the same answer.

Success is never guessed: only a DONE.json of our own that validates is COMPLETED. What the scheduler
says merely explains an end that our records do not.
"""

from dataclasses import dataclass
from enum import StrEnum

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import Event
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


def reconcile(facts: TrialFacts, job: JobSight, *, now: float, lost_after_s: float) -> Standing:
    """The standing of a trial at `now`.

    `job` is the sight of the job of `find_job_id`. A trial without any sign of life for
    `lost_after_s` is LOST, so that every wait ends.
    """
    if facts.outcome is not None and facts.holder is not None and find_end(facts) is None:
        return Standing(Phase.RUNNING, evidence="done; its ranks are ending")
    if facts.outcome is not None:
        done = facts.outcome
        return _ended(Verdict.COMPLETED, f"DONE.json of attempt {done.attempt}: {done.steps} steps")
    end = find_end(facts)
    if end is not None and end.verdict in _OWN_FAULT:
        return _ended(end.verdict, end.evidence)
    if facts.holder is not None:
        return Standing(Phase.RUNNING)
    if job.phase in (Phase.QUEUED, Phase.RUNNING):
        return Standing(job.phase)
    earlier = find_verdict_event(facts)
    if earlier is not None:
        return _ended(Verdict(earlier.details["verdict"]), str(earlier.details.get("evidence", "")))
    if end is not None:
        return _judge_end(facts, end, job)
    return _judge_silence(facts, job, silent_s=now - facts.life_at, lost_after_s=lost_after_s)


def find_job_id(facts: TrialFacts) -> str:
    """Job of the newest submission or start; empty when there is none."""
    return str(next((event.details["job_id"] for event in reversed(facts.events) if _names_job(event)), ""))


def find_end(facts: TrialFacts) -> AttemptEnd | None:
    """END.json of the newest attempt, unless the trial was submitted again since."""
    if not facts.attempts or _last_kind(facts) in ("submitting", "submitted"):
        return None
    return facts.ends.get(facts.attempts[-1])


def find_verdict_event(facts: TrialFacts) -> Event | None:
    """The verdict that a driver wrote over the newest attempt, if nothing happened since."""
    return facts.events[-1] if _last_kind(facts) == "verdict" else None


def count_attempts(facts: TrialFacts) -> int:
    """Attempts that count against `max_attempts`: all but those that someone stopped on purpose."""
    stopped = {number for number, end in facts.ends.items() if end.verdict == Verdict.CANCELLED}
    stopped |= {event.attempt for event in facts.events if _is_cancelling(event)}
    return len(set(facts.attempts) - stopped)


def count_node_seconds(facts: TrialFacts) -> float:
    """Nodes times wall seconds over all attempts; one without END.json counts to its last sign of life."""
    return sum(_attempt_node_seconds(facts, number) for number in facts.attempts)


def _judge_end(facts: TrialFacts, end: AttemptEnd, job: JobSight) -> Standing:
    if end.verdict == Verdict.COMPLETED:
        problem = facts.done_problem or "there is no DONE.json"
        return _ended(Verdict.LOST, f"attempt {end.attempt} said COMPLETED, but {problem}")
    if job.verdict in _STOPPED and end.verdict in _STOPPED and job.verdict is not None:
        return _ended(job.verdict, f"{end.evidence}; {job.evidence}")
    return _ended(end.verdict, end.evidence)


def _judge_silence(facts: TrialFacts, job: JobSight, *, silent_s: float, lost_after_s: float) -> Standing:
    if not facts.events and not facts.attempts:
        return Standing(Phase.NEW)
    records = f"it left neither DONE.json nor END.json{f' ({facts.done_problem})' if facts.done_problem else ''}"
    if job.phase == Phase.ENDED:
        return _ended(job.verdict or Verdict.LOST, f"{job.evidence or 'its job ended'}; {records}")
    if silent_s > lost_after_s:
        return _ended(Verdict.LOST, f"no job, no live process and no record for {silent_s:.0f} s; {records}")
    return Standing(Phase.UNSURE)


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
    later = [event for event in facts.events if event.at > started.at]
    judged = next((event for event in later if event.kind == "verdict" and event.attempt == started.attempt), None)
    if judged is not None and "life_at" in judged.details:
        return float(judged.details["life_at"])
    return min([facts.life_at, *(event.at for event in later)])


def _last_kind(facts: TrialFacts) -> str:
    return facts.events[-1].kind if facts.events else ""


def _names_job(event: Event) -> bool:
    return event.kind in ("submitted", "started") and bool(event.details.get("job_id"))


def _is_cancelling(event: Event) -> bool:
    return event.kind == "verdict" and event.details.get("verdict") == Verdict.CANCELLED


def _ended(verdict: Verdict, evidence: str) -> Standing:
    return Standing(Phase.ENDED, verdict, evidence)
