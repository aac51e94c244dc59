"""Writes an attempt's end down as far as the disk lets it."""

import sys
from typing import Any

from windtunnel.artifacts import write_artifact
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import append_event
from windtunnel.records.trial import AttemptEnd


def settle(
    folder: TrialFolder, end: AttemptEnd, *, signalled_at: float | None = None, step: int | None = None
) -> None:
    """Write END.json and the ledger's last event; raises OSError once both were tried and END.json failed.

    The verdict stands on stderr then, which on Slurm is another file than the trial's. `signalled_at` is when the
    supervisor was told to stop, in seconds since 1970 UTC; `step` is of the newest checkpoint now.
    """
    problem: OSError | None = None
    try:
        write_artifact(folder.end(end.attempt), end)
    except OSError as error:
        problem = error
        print(f"attempt {end.attempt} ended {end.verdict}, unwritten: {end.evidence}", file=sys.stderr, flush=True)
    told: dict[str, Any] = {"verdict": end.verdict, "evidence": end.evidence, "job_id": end.job_id}
    told |= {"signalled_at": signalled_at} if signalled_at is not None else {}
    told |= {"checkpoint_step": step} if step is not None else {}
    append_or_say(folder, "ended", attempt=end.attempt, **told)
    if problem is not None:
        raise problem


def note_signal(folder: TrialFolder, end: AttemptEnd) -> None:
    """Write down what is known of the end as soon as it is: it stands for END.json if that is never written."""
    try:
        write_artifact(folder.signalled(end.attempt), end)
    except OSError as error:
        print(f"attempt {end.attempt}: {end.evidence}; unwritten: {error}", file=sys.stderr, flush=True)


def append_or_say(folder: TrialFolder, kind: str, *, attempt: int, **details: Any) -> None:
    """Add an event to the ledger, or say on stderr why there is none: an attempt does not end for it."""
    try:
        append_event(folder.path, kind, attempt=attempt, **details)
    except OSError as error:
        print(f"attempt {attempt}: ledger: {kind} was not written: {error}", file=sys.stderr, flush=True)
