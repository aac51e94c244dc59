"""A trial that starts again and again without getting further is stopped, also over requeues and new jobs. Pure."""

from collections.abc import Mapping, Sequence

from windtunnel.ledger.log import Event
from windtunnel.records.trial import AttemptEnd, Verdict

MAX_RESTARTS = 3
"""Restarts from the same checkpoint, or from none, that may fail."""
STUCK_CODE = 76
"""Exit code in END.json of an attempt that was not begun for this."""
_NOT_ITS_OWN = frozenset({Verdict.PREEMPTED, Verdict.CANCELLED})
"""Ends that somebody else wanted: they say nothing of the trial."""


def find_stuck(events: Sequence[Event], ends: Mapping[int, AttemptEnd], *, step: int | None) -> str:
    """Why the trial is not begun once more, after a checkpoint of `step` (None without one); empty when it may be.

    Attempts before a withdrawal do not count.
    """
    begun = [event for event in _cut(events) if event.kind == "started" and "checkpoint_step" in event.details]
    stuck = [event.attempt for event in begun if event.details["checkpoint_step"] == step]
    failed = [attempt for attempt in stuck if attempt not in ends or _is_its_own(ends[attempt])]
    if len(failed) <= MAX_RESTARTS:
        return ""
    told = "; ".join(_render_end(attempt, ends.get(attempt)) for attempt in failed[-MAX_RESTARTS:])
    where = f"the checkpoint of step {step}" if step is not None else "step 0, without any checkpoint"
    return f"{len(failed) - 1} restarts from {where} got no further: {told}"


def find_vanished(
    events: Sequence[Event], *, step: int | None, trained: Mapping[str, object] | None = None, every: int = 0
) -> str:
    """Why a trial without any checkpoint (`step` None) does not begin at step 0: it had one; empty when it may.

    `trained` is the newest record of its metrics. A supervisor that was killed wrote no step into the ledger; but a
    trial that is past two intervals of `every` steps began its second save, which waits for the first.
    """
    if step is not None:
        return ""
    told = (event.details.get(name) for event in _cut(events) for name in ("checkpoint_step", "step"))
    known = max((each for each in told if isinstance(each, int)), default=0)
    had = f"it had a checkpoint of step {known}" if known else _describe_trained(events, trained or {}, every)
    return (
        f"{had}, and its checkpoints/ has none now: put them back, or `windtunnel retry` lets it begin at step 0"
        if had
        else ""
    )


def _describe_trained(events: Sequence[Event], trained: Mapping[str, object], every: int) -> str:
    begun = {event.attempt for event in _cut(events) if event.kind == "started"}
    step, attempt = trained.get("step"), trained.get("attempt")
    if not every or not isinstance(step, int) or attempt not in begun or step <= 2 * every:
        return ""
    return f"attempt {attempt} trained to step {step} with a checkpoint each {every} steps"


def _cut(events: Sequence[Event]) -> Sequence[Event]:
    """Those since the trial's verdict was last withdrawn."""
    withdrawn = max((number for number, event in enumerate(events) if event.kind == "withdrawn"), default=-1)
    return events[withdrawn + 1 :]


def _is_its_own(end: AttemptEnd) -> bool:
    return end.verdict not in _NOT_ITS_OWN and not end.node_faults


def _render_end(attempt: int, end: AttemptEnd | None) -> str:
    return f"attempt {attempt}: {end.verdict}: {end.evidence}" if end is not None else f"attempt {attempt}: no word"
