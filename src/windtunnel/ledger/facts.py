"""All that a trial's folder tells of it, read at once. Reads only; what it means is for `ledger.reconcile`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.ledger.layout import SIGNALLED, TrialFolder, read_attempt_numbers
from windtunnel.ledger.lease import Holder, read_live_holder
from windtunnel.ledger.log import LEDGER, Event, read_events
from windtunnel.records.trial import AttemptEnd, TrialOutcome


@dataclass(frozen=True)
class TrialFacts:
    """Events, attempts and markers of one trial; `holder` is its live supervisor."""

    events: tuple[Event, ...]
    attempts: tuple[int, ...]
    ends: dict[int, AttemptEnd]
    outcome: TrialOutcome | None
    """Of a DONE.json that validates."""
    done_problem: str
    """Why a DONE.json does not count; empty when it does, or when there is none."""
    holder: Holder | None
    life_at: float
    """Last change of the trial's records, in seconds since 1970; 0 when there are none."""


NO_FACTS = TrialFacts((), (), {}, None, "", None, 0.0)
"""Of a trial that nobody has begun, or that cannot be read."""


def read_facts(folder: TrialFolder, *, steps: int) -> TrialFacts:
    """The facts of the trial whose id is the folder's name, and which is done after `steps` steps."""
    attempts = read_attempt_numbers(folder)
    outcome, problem = read_outcome(folder, steps=steps)
    return TrialFacts(
        events=tuple(read_events(folder.path)),
        attempts=tuple(attempts),
        ends=read_ends(folder, attempts),
        outcome=outcome,
        done_problem=problem,
        holder=read_live_holder(folder.lease),
        life_at=_read_life(folder, attempts),
    )


def read_outcome(folder: TrialFolder, *, steps: int) -> tuple[TrialOutcome | None, str]:
    """The trial's outcome, or why its DONE.json does not count (empty when there is none).

    `steps` is 0 for a program that decides itself when it is done.
    """
    if not folder.done.exists():
        return None, ""
    try:
        outcome = read_artifact(folder.done, TrialOutcome)
    except (ArtifactError, InputFileError) as error:
        return None, str(error)
    if outcome.trial_id != folder.path.name:
        return None, f"{folder.done} is of trial {outcome.trial_id}, expected {folder.path.name}"
    if steps and outcome.steps != steps:
        return None, f"{folder.done} has {outcome.steps} steps, expected {steps}"
    return outcome, ""


def read_end(path: Path) -> AttemptEnd | None:
    """The END.json at `path`, or what a supervisor that was killed had noted in its stead; None when neither is."""
    for each in (path, path.with_name(SIGNALLED)):
        try:
            return read_artifact(each, AttemptEnd)
        except (ArtifactError, InputFileError):
            continue
    return None


def read_ends(folder: TrialFolder, attempts: Iterable[int]) -> dict[int, AttemptEnd]:
    """The END.json of each of these attempts that has one."""
    return {number: end for number in attempts if (end := read_end(folder.end(number))) is not None}


def _read_life(folder: TrialFolder, attempts: list[int]) -> float:
    records = [folder.path / LEDGER, folder.metrics, *folder.lease.glob("[0-9]*")]
    if attempts:
        newest = folder.attempt(attempts[-1])
        records += [newest, *newest.iterdir()]
    return max((_read_mtime(path) for path in records), default=0.0)


def _read_mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
