"""Rank 0's marks of what it begins when, in `timeline.jsonl` of its attempt; others mark nothing.

A mark costs one write, without fsync; one that cannot be written is left out, since no trial ends for it.
"""

import json
import os
import time
from pathlib import Path

from windtunnel.records.goodput import TIMELINE, Mark, Phase


class Timeline:
    """Of one rank of one attempt; without a folder it keeps nothing."""

    def __init__(self, attempt_dir: Path | None = None) -> None:
        # The time of day may be set while a trial runs; the time between marks must be right all the same.
        self._offset_s = time.time() - time.monotonic()
        self._torn = False
        self._descriptor = _open(attempt_dir / TIMELINE) if attempt_dir is not None else None

    def mark(self, phase: Phase, step: int) -> None:
        """`phase` begins now, after so many finished steps."""
        if self._descriptor is None:
            return
        mark = Mark(phase, time.monotonic() + self._offset_s, step)
        line = json.dumps(vars(mark), separators=(",", ":")) + "\n"
        data = (("\n" if self._torn else "") + line).encode()
        try:
            self._torn = os.write(self._descriptor, data) != len(data)
        except OSError:
            self._torn = True


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o664)
    except OSError:
        return None
