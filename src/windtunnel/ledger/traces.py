"""Reads what attempts left of their own time: marks, hangs, and when their records last changed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.goodput import summarise_goodput
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers
from windtunnel.records.goodput import TIMELINE, Goodput, Mark, Phase, Trace
from windtunnel.records.hang import is_hang_report, is_stacks

_PROGRAMS = "settings.json"
"""Written for programs that are not our trainer."""


def read_goodput(folder: TrialFolder, facts: TrialFacts, *, now: float) -> Goodput:
    """Where the time of a trial with these facts went; `now` in seconds since 1970."""
    traces = read_traces(folder)
    if facts.holder is not None and traces:
        newest = max(traces)
        traces[newest] = replace(traces[newest], last_sign=now)
    return summarise_goodput(facts.events, traces, facts.ends, now=now)


def read_traces(folder: TrialFolder) -> dict[int, Trace]:
    """What each attempt left."""
    return {number: read_trace(folder.attempt(number)) for number in read_attempt_numbers(folder)}


def read_trace(attempt_dir: Path) -> Trace:
    """What one attempt left; a folder that cannot be read left nothing."""
    try:
        entries = list(attempt_dir.iterdir())
    except OSError:
        return Trace()
    changes = [changed for path in (attempt_dir, *entries) if (changed := _read_mtime(path)) is not None]
    marks = tuple(read_marks(attempt_dir / TIMELINE))
    foreign = any(path.name == _PROGRAMS for path in entries)
    return Trace(marks, _find_hung_since(entries), max(changes, default=0.0), foreign)


def read_marks(path: Path) -> Sequence[Mark]:
    """All whole marks in order; a torn line is passed over, no file is no marks."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [mark for line in lines if (mark := _parse_mark(line)) is not None]


def _parse_mark(line: str) -> Mark | None:
    try:
        fields = json.loads(line)
        return Mark(Phase(fields["phase"]), float(fields["at"]), int(fields["step"]))
    except (ValueError, KeyError, TypeError):
        return None


def _find_hung_since(entries: Sequence[Path]) -> float | None:
    """When the first rank had begun to wait, of those that left a report; None where none hung."""
    reports = [since for path in entries if (since := _read_hung_since(path)) is not None]
    stacks = [path for path in entries if is_stacks(path.name) and path.stat().st_size]
    # Stacks alone are of a rank on which no Python ran: its last mark is the nearest sign before.
    return min(reports) if reports else 0.0 if stacks else None


def _read_hung_since(path: Path) -> float | None:
    if not is_hang_report(path.name):
        return None
    try:
        return path.stat().st_mtime - float(json.loads(path.read_text())["silent_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_mtime(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
