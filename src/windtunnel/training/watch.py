"""Watches a rank for a hang: where it is, how long a step may take, and what is left behind when none comes.

A rank that hangs stops all others in their next collective. Each of them then writes down where it stands and its
threads' stacks, and ends; the supervisor names the one that stands behind the others, or that wrote nothing.
"""

import faulthandler
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from windtunnel.artifacts import write_atomic
from windtunnel.records.hang import HUNG_CODE, HangReport, name_hang_report, name_stacks

FACTOR, EXTRA_S = 3.0, 5.0
"""A step may take so many times the 99th percentile, and so many seconds more."""
_KNOWN_STEPS = 20
_LOOK_S = 0.5
_OTHERS_S = 2.0
"""Time that other ranks have to write down where they stand, before this one ends."""
_DEAF_S = 30.0
"""Time after which a rank ends whose interpreter lock is held for ever, so that no Python of it can run."""


class Position:
    """Where a rank is; set by its trainer at every turn, and read by its watch."""

    def __init__(self) -> None:
        self.step = 0
        self.phase = ""
        self.at = time.monotonic()
        self.step_began = self.at
        self.limit_s = float("inf")
        """Seconds that it may stay where it is."""

    def enter(self, phase: str, step: int) -> None:
        """One of `records.hang.PHASES`, of the step that is counted from 1."""
        if step != self.step:
            self.step_began = time.monotonic()
        self.phase, self.step, self.at = phase, step, time.monotonic()

    def leave(self) -> None:
        """Outside a step anything may take its time: checkpoints, evaluation, set-up."""
        self.phase, self.at = "", time.monotonic()

    def learn(self, step_times_s: Sequence[float]) -> None:
        """Set the limit by steps that were timed; there is none before enough are known."""
        if len(step_times_s) >= _KNOWN_STEPS:
            ordered = sorted(step_times_s)
            self.limit_s = FACTOR * ordered[int(0.99 * (len(ordered) - 1))] + EXTRA_S


@contextmanager
def watch_hangs(position: Position, *, rank: int, host: str, attempt_dir: Path) -> Iterator[None]:
    """Watch in a thread of its own while inside."""
    done = threading.Event()
    with (attempt_dir / name_stacks(rank)).open("w") as stacks:
        thread = threading.Thread(
            target=_watch, args=(position, done, rank, host, attempt_dir, stacks.fileno()), name="watch", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            faulthandler.cancel_dump_traceback_later()
    if not (attempt_dir / name_stacks(rank)).stat().st_size:
        (attempt_dir / name_stacks(rank)).unlink()


def _watch(position: Position, done: threading.Event, rank: int, host: str, attempt_dir: Path, stacks: int) -> None:
    while not done.wait(_LOOK_S):
        if not position.phase or position.limit_s == float("inf"):
            faulthandler.cancel_dump_traceback_later()
            continue
        # It goes off without the interpreter lock, and is put off again for as long as Python runs.
        faulthandler.dump_traceback_later(position.limit_s + _DEAF_S, exit=True, file=stacks)
        silent_s = time.monotonic() - position.at
        if silent_s > position.limit_s:
            report = HangReport(rank, host, position.step, position.phase, silent_s, position.limit_s)
            _give_up(report, attempt_dir, stacks)


def _give_up(report: HangReport, attempt_dir: Path, stacks: int) -> None:
    faulthandler.dump_traceback(file=stacks, all_threads=True)
    write_atomic(attempt_dir / name_hang_report(report.rank), (json.dumps(asdict(report)) + "\n").encode())
    time.sleep(_OTHERS_S)
    os._exit(HUNG_CODE)
