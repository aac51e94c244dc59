"""The trials that share a job, whichever study submitted it: by a wish it ends only once none of them wants it."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import Event, read_events
from windtunnel.ledger.story import Submission, find_begun, find_last_event, find_wish
from windtunnel.records.trial import Verdict

_UNDER_WAY = ("submitting", "submitted", "waiting", "started")
_GOES_ON = (Verdict.PREEMPTED, Verdict.NODE_FAIL)
"""Ends after which a job that Slurm starts again goes on with the trial."""


def is_wanted(store: Path, submission: Submission, *, jobs_dir: Path, but: Collection[str]) -> bool:
    """Whether the job of a submission is to run trials, other than those of the ids `but`, that nobody wished to end.

    `jobs_dir` is asked for the pack of an old ledger, which does not tell it.
    """
    others = (trial_id for trial_id in list_mates(submission, jobs_dir) if trial_id not in but)
    return any(_counts_on(read_events(trial_folder(store, trial_id).path), submission.name) for trial_id in others)


def list_mates(submission: Submission, jobs_dir: Path) -> tuple[str, ...]:
    """Ids of the trials that a job runs in turn; empty for one alone."""
    if submission.pack or submission.jobs_dir:
        return submission.pack
    packs = _read_packs(jobs_dir, submission.name)
    return packs[submission.index] if submission.index < len(packs) else ()


def _counts_on(events: Sequence[Event], name: str) -> bool:
    begun, last = find_begun(events), find_last_event(events)
    if begun is None or last is None or begun.name != name or find_wish(events) is not None:
        return False
    return last.kind in _UNDER_WAY or (last.kind == "ended" and last.details.get("verdict") in _GOES_ON)


def _read_packs(jobs_dir: Path, name: str) -> tuple[tuple[str, ...], ...]:
    try:
        commands = json.loads((jobs_dir / f"{name}.json").read_text())
    except FileNotFoundError:
        return ()
    return tuple(
        tuple(Path(word).name for word in command if Path(word).parent.name == "trials") for command in commands
    )
