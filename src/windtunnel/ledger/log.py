"""A trial's ledger: an append-only file of events on the shared file system. Any process may read it."""

import errno
import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from windtunnel.records.trial import Verdict

LEDGER = "ledger.jsonl"
ASIDE = frozenset({"cancelling", "queueing", "queued"})
"""Kinds of events that change nothing of where the trial stands: its job goes on."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a trial.

    `kind` is one of submitting (about to be, under a name that finds the job again), submitted, postponed
    (the place was full), waiting (for its turn in a job of several trials, behind another), started, ended (these
    three by the supervisor), verdict (a driver's, over an attempt that did not complete), cancelling
    (someone asks for the trial's end), queueing and queued (the next job is put behind the present one; without a
    job's id it was not) and withdrawn (someone takes the verdict back, with all budgets).
    """

    kind: str
    attempt: int
    at: float
    """Seconds since 1970 UTC."""
    host: str
    pid: int
    details: dict[str, Any] = field(default_factory=dict)


_EVENT = TypeAdapter(Event)
_FAR_AT = 253_402_300_800.0
"""Seconds from 1970 to the year 10000, past which no time can be printed."""


def append_event(trial_dir: Path, kind: str, *, attempt: int, **details: Any) -> Event:
    """Add one line with a single write, and make it durable.

    Starts on a new line even after a writer that was cut off, so that only its torn line is lost. Raises
    OSError when the file system takes only a part of the line, or nothing.
    """
    event = Event(kind, attempt, time.time(), socket.gethostname(), os.getpid(), details)
    line = json.dumps(asdict(event), separators=(",", ":"), default=str) + "\n"
    descriptor = os.open(trial_dir / LEDGER, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o664)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (("\n" if torn else "") + line).encode()
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(trial_dir / LEDGER))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return event


def read_events(trial_dir: Path) -> list[Event]:
    """All whole events in order; a line that is none, torn or of another program's, is passed over.

    No ledger is no events.
    """
    try:
        text = (trial_dir / LEDGER).read_text(errors="replace")
    except FileNotFoundError:
        return []
    events = []
    for line in text.splitlines():
        try:
            event = _EVENT.validate_json(line, strict=True)
        except ValidationError:
            continue
        if _is_sound(event):
            events.append(event)
    return events


def _is_sound(event: Event) -> bool:
    """Whether this version can make anything of its time, and of its verdict."""
    verdict = event.details.get("verdict")
    return 0 <= event.at < _FAR_AT and (event.kind != "verdict" or verdict in tuple(Verdict))
