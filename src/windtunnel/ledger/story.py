"""What a trial's events tell when read together: its newest submission, and whether its end is wished. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from windtunnel.ledger.log import ASIDE, Event

IN_FLIGHT_S = 180.0
"""Time for which a submission without an answer may still be taken: sbatch itself tries again for two minutes
while the controller is busy, also after the driver that started it was killed."""
_TOLD_BY_JOB = ("waiting", "started", "ended")


@dataclass(frozen=True)
class Submission:
    """A submission that was begun: jobs of one name, of which `index` is the trial's."""

    name: str
    index: int
    jobs_dir: str = ""
    """Folder of jobs of the study that submits; empty where an old ledger does not tell it."""
    pack: tuple[str, ...] = ()
    """Ids of the trials that the job runs in turn; empty for one alone, or where an old ledger does not tell them."""
    alone: bool = False
    """Whether no other trial's job has the name, so that a successor can wait behind it."""


@dataclass(frozen=True)
class Succession:
    """The next job of a trial, which waits behind the present one, or is about to."""

    name: str
    """Of both jobs, as of the submission."""
    job_id: str
    """Empty while nobody has written it down."""
    at: float
    """When it was begun, in seconds since 1970."""
    jobs_dir: str
    """Folder of jobs of the study that queued it."""
    retries: Mapping[str, int]
    """The budgets within which it goes on with the trial, by their settings' names."""


def find_begun(events: Sequence[Event]) -> Submission | None:
    """The submission that was begun last, whatever came of it."""
    begun = next((event for event in reversed(events) if event.kind == "submitting"), None)
    return _read_submission(begun) if begun is not None else None


def find_submission(events: Sequence[Event]) -> Submission | None:
    """The submission that was begun last, if its job is not known yet."""
    last = find_last_event(events)
    return _read_submission(last) if last is not None and last.kind == "submitting" else None


def find_wish(events: Sequence[Event]) -> Event | None:
    """Someone's wish that the trial ends, unless a submission, or a withdrawal, takes it back.

    A submission takes back the wishes among the events that its driver had `seen` when it decided to submit, and
    no other: of a wish and a submission that cross, the wish wins, in whichever order their lines come to stand.
    What comes of a submission (a job's id, or that it was put off) takes nothing back.
    """
    for number in reversed(range(len(events))):
        if events[number].kind == "cancelling":
            taken = any(_takes_back(later, number) for later in events[number + 1 :])
            return None if taken else events[number]
    return None


def find_succession(events: Sequence[Event]) -> Succession | None:
    """The job behind the present one; None when none is queued, or when the last one has become the present one."""
    found: Succession | None = None
    known: set[str] = set()
    for event in events:
        job_id = str(event.details.get("job_id") or "")
        if event.kind in ("submitting", "withdrawn"):
            found = None
        elif event.kind == "queueing":
            found = _read_succession(event)
        elif event.kind == "queued":
            found = replace(found, job_id=job_id) if found is not None and job_id and job_id not in known else None
        elif event.kind in ("submitted", "started") and job_id:
            # A start of another job than those before is the successor's, also where its id was never written down.
            if job_id not in known:
                found = None
            known.add(job_id)
    return found


def drop_overtaken(events: Sequence[Event]) -> Iterator[Event]:
    """All but the verdicts over an attempt after which another had begun: that one's job came before its driver."""
    newest = 0
    for event in events:
        if event.kind == "started":
            newest = max(newest, event.attempt)
        if event.kind != "verdict" or event.attempt >= newest:
            yield event


def find_last_event(events: Sequence[Event]) -> Event | None:
    """The event that tells where the trial stands."""
    told = [event for event in drop_overtaken(events) if event.kind not in ASIDE]
    # A quick job may tell of itself before its driver has written the job's id down.
    late = len(told) > 1 and told[-1].kind == "submitted" and told[-2].kind in _TOLD_BY_JOB
    if late and told[-2].details.get("job_id") == told[-1].details.get("job_id"):
        return told[-2]
    return told[-1] if told else None


def find_hosts(events: Sequence[Event]) -> tuple[str, ...]:
    """Where the newest attempt runs or ran; empty before the first."""
    started = next((event for event in reversed(events) if event.kind == "started"), None)
    return tuple((started.details.get("hosts") or ()) if started is not None else ())


def _takes_back(event: Event, number: int) -> bool:
    # A ledger without `seen` is of a driver that did not look so closely.
    began = event.kind == "submitting" or (event.kind == "submitted" and "submission" not in event.details)
    return event.kind == "withdrawn" or (began and number < event.details.get("seen", number + 1))


def _read_submission(event: Event) -> Submission:
    details = event.details
    pack = tuple(str(trial_id) for trial_id in details.get("pack", ()))
    name, index = str(details.get("submission", "")), int(details.get("index", 0))
    return Submission(name, index, str(details.get("jobs_dir", "")), pack, bool(details.get("alone", False)))


def _read_succession(event: Event) -> Succession:
    retries = {str(name): int(budget) for name, budget in event.details.get("retries", {}).items()}
    name, jobs_dir = str(event.details.get("submission", "")), str(event.details.get("jobs_dir", ""))
    return Succession(name, "", event.at, jobs_dir, retries)
