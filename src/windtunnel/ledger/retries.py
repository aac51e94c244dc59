"""Whether a trial that ended is tried again: by its cause, within budgets that the ledger itself counts. Pure.

Any driver on any host counts the same. What Slurm starts again by itself after a preemption is not counted;
after a node's failure it is, since a trial may be what its nodes fail of. A trial whose job ended before its turn in
it came was not begun, and pays nothing: the first trial of each job pays, so that this ends.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windtunnel.ledger.log import Event
from windtunnel.ledger.story import drop_overtaken
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.sweep import RetrySettings

_CAUSES = {
    Verdict.NODE_FAIL: "node_fail",
    Verdict.LOST: "lost",
    Verdict.PREEMPTED: "preempted",
    Verdict.TIMEOUT: "timeout",
    Verdict.OOM: "out_of_memory",
    Verdict.FAILED: "failed",
}


@dataclass(frozen=True)
class Ending:
    """How one run of a trial ended."""

    verdict: Verdict
    step: int = 0
    """Of its newest checkpoint then."""
    begun: bool = True
    """Whether the trial's turn in its job had come."""


@dataclass(frozen=True)
class Retry:
    """Whether to try again, and a clause about the budget; empty where there never was one."""

    again: bool
    words: str = ""


def decide_retry(current: Ending, earlier: Iterable[Ending], budgets: RetrySettings) -> Retry:
    """What to do after `current`, when the trial was tried again after each of `earlier`.

    A TIMEOUT without a newer checkpoint than at those before is not tried again: it would end the same way.
    """
    cause = current.verdict
    if cause not in _CAUSES:
        return Retry(False)
    if not current.begun:
        return Retry(True, "submitting it again, at no cost: it had not begun")
    earlier = list(earlier)
    budget: int = getattr(budgets, _CAUSES[cause])
    used = Counter(ending.verdict for ending in earlier)[cause]
    if used >= budget:
        return Retry(False, f"its {_count(budget)} after {cause} {_are(budget)} used up" if budget else "")
    before = max((ending.step for ending in earlier if ending.verdict == cause), default=0)
    if cause == Verdict.TIMEOUT and current.step <= before:
        since = f"newer than that of step {before}" if before else "at all"
        return Retry(False, f"not tried again: it made no checkpoint {since} within its time limit")
    return Retry(True, f"trying again ({used + 1} of {budget} after {cause})")


def read_retried(events: Iterable[Event], ends: Mapping[int, AttemptEnd]) -> list[Ending]:
    """The endings after which the trial was started again, in order, since its verdict was last withdrawn."""
    events = list(drop_overtaken(list(events)))
    retried: list[Ending] = []
    open_: Event | None = None
    pending: Ending | None = None
    for number, event in enumerate(events):
        if event.kind == "withdrawn":
            retried, open_, pending = [], None, None
        elif event.kind == "verdict":
            ending = _read_verdict(event)
            unpaid = ending.verdict == Verdict.PREEMPTED and is_unturned(events[:number])
            open_, pending = None, None if unpaid else ending
        elif event.kind == "submitted" and open_ is not None and _share_job(open_, event):
            continue  # a quick job told of itself before its driver had written the job's id down
        elif event.kind in ("submitting", "submitted", "waiting", "started"):
            if open_ is not None:
                pending = _judge_superseded(open_, event, ends.get(open_.attempt))
            retried += [pending] if pending is not None else []
            open_, pending = (event if event.kind == "started" else None), None
    return retried


def is_unturned(events: Sequence[Event]) -> bool:
    """Whether a trial only ever waited for its turn in its newest job."""
    told = (event.kind for event in reversed(events) if event.kind in ("submitting", "waiting", "started"))
    return next(told, "") == "waiting"


def is_spent(verdict: Verdict, earlier: Iterable[Ending], budgets: RetrySettings) -> bool:
    """Whether a trial was started again after `verdict` more often than its budget allows."""
    budget: int = getattr(budgets, _CAUSES[verdict])
    return sum(ending.verdict == verdict for ending in earlier) > budget


def _read_verdict(event: Event) -> Ending:
    return Ending(Verdict(event.details["verdict"]), int(event.details.get("step", 0)))


def _judge_superseded(run: Event, later: Event, end: AttemptEnd | None) -> Ending | None:
    """How a run ended over which no driver wrote a verdict, from what came after it."""
    same_job = later.kind in ("started", "waiting") and _share_job(run, later)
    if same_job and end is not None and end.verdict not in (Verdict.NODE_FAIL, Verdict.LOST):
        return None  # Slurm's own requeue of a job that it had told to stop
    if end is not None:
        return Ending(end.verdict)
    return Ending(Verdict.NODE_FAIL if same_job else Verdict.LOST)


def _share_job(run: Event, other: Event) -> bool:
    return bool(run.details.get("job_id") == other.details.get("job_id"))


def _count(budget: int) -> str:
    return "one retry" if budget == 1 else f"{budget} retries"


def _are(budget: int) -> str:
    return "is" if budget == 1 else "are"
