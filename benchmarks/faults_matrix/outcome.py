"""What a cell of the matrix says of the attempts that were run. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults_matrix.bed import Attempt
from benchmarks.faults_matrix.journal import SAVED, STEP, Event

SILENT = "silent: goes on from a changed state"
_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|exit))\b", re.MULTILINE)
_OURS = "windtunnel: "
_FOLDER = re.compile(r"^/\S+: | in /\S+")
_MOST_LETTERS = 60


def describe_resume(before: Attempt, after: Attempt, *, intact: bool) -> str:
    """How the attempt after a fault went on; `intact` says whether with the state that was saved."""
    if after.resumed is None:
        return f"stops ({name_reason(after)})"
    if after.resumed.step == 0:
        return "begins at step 0"
    if not intact:
        return SILENT
    if after.done is None:
        return f"resumes, then ends ({name_reason(after)})"
    return f"lost {before.last_step - after.resumed.step} of {before.last_step} steps"


def describe_found(before: Attempt, after: Attempt, *, newest: int, intact: bool) -> str:
    """The same after damage to the state of step `newest`: whether the damage was found."""
    told = describe_resume(before, after, intact=intact)
    is_found = after.resumed is None or 0 < after.resumed.step < newest
    return f"found: {told}" if is_found else told


def describe_exactness(after: Attempt, whole: Attempt) -> str:
    """Whether a resumed run ended as the run that was never stopped."""
    if after.done is None or whole.done is None:
        return f"ends ({name_reason(after)})"
    return "resumed exactly" if after.done.digest == whole.done.digest else "differs from the whole run"


def is_intact(after: Attempt, events: Sequence[Event], whole: Attempt | None) -> bool:
    """Whether the resumed state is one that was saved at its step; or, where a side tells nothing of that, whether
    the run then ended as the whole run."""
    if after.resumed is None or after.resumed.step == 0:
        return True
    if whole is not None:
        return after.done is not None and whole.done is not None and after.done.digest == whole.done.digest
    saved = {event.digest for event in events if event.kind == SAVED and event.step == after.resumed.step}
    return after.resumed.digest in saved


def count_repeated(events: Sequence[Event], after: Attempt, *, epoch_steps: int) -> tuple[int, int]:
    """Samples of the interrupted epoch that were trained on twice, and that never were."""
    assert after.resumed is not None
    first = after.resumed.step // epoch_steps * epoch_steps
    kept = [
        event
        for event in events
        if event.kind == STEP
        and first < event.step <= first + epoch_steps
        and (event.attempt == after.events[0].attempt or event.step <= after.resumed.step)
    ]
    seen = Counter(row for event in kept for row in event.rows)
    everything = {row for event in events for row in event.rows}
    return sum(count > 1 for count in seen.values()), len(everything - set(seen))


def count_outcomes(outcomes: Sequence[str]) -> str:
    """Several outcomes of one case, the rarest first, each with how often it came."""
    counts = Counter(outcomes)
    if len(counts) == 1:
        return f"{outcomes[0]} ({len(outcomes)} of {len(outcomes)})"
    ordered = sorted(counts.items(), key=lambda item: item[1])
    return "; ".join(f"{told} ({count} of {len(outcomes)})" for told, count in ordered)


def name_reason(attempt: Attempt) -> str:
    """The error that ended an attempt, by its name or, of ours, by the beginning of its message."""
    lines = [line for line in attempt.log.splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith(_OURS):
            told = _FOLDER.sub("", line.removeprefix(_OURS)).partition(": ")[0]
            return told if len(told) <= _MOST_LETTERS else f"{told[:_MOST_LETTERS].rpartition(' ')[0]} …"
    named = _ERROR.findall(attempt.log)
    if named:
        return str(named[-1])
    return f"exit code {attempt.codes[0]}"


def describe_asked(asked: Path) -> str:
    """What was asked of `scontrol`."""
    lines = asked.read_text().splitlines() if asked.exists() else []
    return f"asks for {'; '.join(f'`scontrol {line}`' for line in lines)}" if lines else "asks for nothing"
