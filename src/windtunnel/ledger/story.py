"""What a trial's events tell when read together: its newest submission, and whether its end is wished. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.ledger.log import Event

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


def find_last_event(events: Sequence[Event]) -> Event | None:
    """The event that tells where the trial stands."""
    # A wish changes nothing of that: the job goes on until it is stopped.
    told = [event for event in events if event.kind != "cancelling"]
    # A quick job may tell of itself before its driver has written the job's id down.
    late = len(told) > 1 and told[-1].kind == "submitted" and told[-2].kind in _TOLD_BY_JOB
    if late and told[-2].details.get("job_id") == told[-1].details.get("job_id"):
        return told[-2]
    return told[-1] if told else None


def _takes_back(event: Event, number: int) -> bool:
    # A ledger without `seen` is of a driver that did not look so closely.
    began = event.kind == "submitting" or (event.kind == "submitted" and "submission" not in event.details)
    return event.kind == "withdrawn" or (began and number < event.details.get("seen", number + 1))


def _read_submission(event: Event) -> Submission:
    details = event.details
    pack = tuple(str(trial_id) for trial_id in details.get("pack", ()))
    name, index = str(details.get("submission", "")), int(details.get("index", 0))
    return Submission(name, index, str(details.get("jobs_dir", "")), pack)
