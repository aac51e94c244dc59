"""Writes an attempt's end down as far as the disk lets it."""

import sys
from typing import Any

from windtunnel.artifacts import write_artifact
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import append_event
from windtunnel.records.trial import AttemptEnd


def settle(folder: TrialFolder, end: AttemptEnd) -> None:
    """Write END.json and the ledger's last event; raises OSError once both were tried and END.json failed.

    The verdict stands on stderr then, which on Slurm is another file than the trial's.
    """
    problem: OSError | None = None
    try:
        write_artifact(folder.end(end.attempt), end)
    except OSError as error:
        problem = error
        print(f"attempt {end.attempt} ended {end.verdict}, unwritten: {end.evidence}", file=sys.stderr, flush=True)
    append_or_say(folder, "ended", attempt=end.attempt, verdict=end.verdict, evidence=end.evidence, job_id=end.job_id)
    if problem is not None:
        raise problem


def append_or_say(folder: TrialFolder, kind: str, *, attempt: int, **details: Any) -> None:
    """Add an event to the ledger, or say on stderr why there is none: an attempt does not end for it."""
    try:
        append_event(folder.path, kind, attempt=attempt, **details)
    except OSError as error:
        print(f"attempt {attempt}: ledger: {kind} was not written: {error}", file=sys.stderr, flush=True)
