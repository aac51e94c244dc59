"""Follows the lines that a program writes, and keeps them as the trial's own metrics.jsonl while it runs."""

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.attempt.protocol import MAX_LINE_BYTES, Line, Tally, Timed, parse_line
from windtunnel.records.trial import StepRecord

_POLL_S = 0.5
_CHUNK_BYTES = 1 << 20
_KEPT_BYTES = 1 << 28
"""Size past which metrics.jsonl takes no more: the lines still count."""


@dataclass
class MetricsFollower:
    """Reads `source` as it grows; `poll` is cheap to call often."""

    source: Path
    target: Path
    attempt: int
    tally: Tally = field(default_factory=Tally)
    _offset: int = 0
    _number: int = 0
    _rest: bytes = b""
    _polled_at: float = float("-inf")

    def poll(self) -> None:
        """Take the lines that have come, twice a second at most."""
        if time.monotonic() - self._polled_at >= _POLL_S:
            self._polled_at = time.monotonic()
            self._read()

    def finish(self) -> Tally:
        """Take the last lines, also one without its newline; what all have told."""
        self._read()
        if self._rest.strip():
            self._take([self._rest])
            self._rest = b""
        return self.tally

    def _read(self) -> None:
        try:
            with self.source.open("rb") as file:
                file.seek(self._offset)
                while data := file.read(_CHUNK_BYTES):
                    self._offset += len(data)
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    self._take(lines)
                    self._rest = self._rest[: MAX_LINE_BYTES + 1]  # enough to see that it is too long
        except OSError:
            pass  # not there yet, or not for us: what is missing shows in the verdict

    def _take(self, lines: list[bytes]) -> None:
        now = time.time()
        records = [record for line in lines if (record := self._take_line(line, now)) is not None]
        text = "".join(json.dumps(asdict(record), separators=(",", ":")) + "\n" for record in records)
        try:
            if text and (not self.target.exists() or self.target.stat().st_size < _KEPT_BYTES):
                with self.target.open("a") as file:
                    file.write(text)
        except OSError:
            pass  # a full disk: the program goes on, and the page lacks a part of its curve

    def _take_line(self, data: bytes, now: float) -> StepRecord | None:
        self._number += 1
        if not data.strip():
            return None
        try:
            line = parse_line(data)
            timed = self.tally.add(line, now=now)
        except ValueError as error:
            self.tally.pass_over(str(error), number=self._number)
            return None
        return self._record(line, timed, now)

    def _record(self, line: Line, timed: Timed | None, now: float) -> StepRecord | None:
        if line.step is None:
            return None
        rate = timed.samples / timed.seconds if timed is not None and timed.samples else None
        return StepRecord(
            step=line.step,
            attempt=self.attempt,
            loss=line.known.get("loss"),
            learning_rate=line.known.get("learning_rate"),
            samples_per_s=rate,
            step_s=timed.seconds / timed.steps if timed is not None else None,
            elapsed_s=max(0.0, line.known.get("time", now) - self.tally.started_at),
        )
