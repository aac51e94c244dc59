"""One kind of event into many trials' ledgers: each as durable as one alone, all in the time of a few."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from windtunnel.ledger.log import append_event

WRITERS = 8
"""Threads that write trials' files. Each waits mostly for the disk, which serves many in the time of a few."""


def append_events(told: Iterable[tuple[Path, dict[str, Any]]], kind: str, *, attempt: int) -> None:
    """Add an event to the ledger of each trial's folder, with its own details; all are durable on return.

    Raises the first OSError; other ledgers may have the event then.
    """
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda each: append_event(each[0], kind, attempt=attempt, **each[1]), told))
