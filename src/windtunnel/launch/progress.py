"""What a person sees of a trial under way: its newest metrics, not more than every two seconds."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from windtunnel.records.trial import StepRecord

_EVERY_S = 2.0
_TAIL_BYTES = 1 << 16
"""The newest record is in the last of these: a trial of a day leaves many thousand times as much."""
_STEP_RECORD = TypeAdapter(StepRecord)


@dataclass
class Progress:
    """Follows one metrics.jsonl."""

    metrics: Path
    steps: int
    last: StepRecord | None = None
    _offset: int = 0
    _said_step: int = 0
    _said_at: float = field(default=float("-inf"))

    def skip_past(self) -> None:
        """Take what is there as known: it is not news. Reads the file's end alone."""
        self._said_step = self.read_last_step()

    def read_last(self) -> StepRecord | None:
        """The newest record; None without one."""
        self._read()
        return self.last

    def read_last_step(self) -> int:
        """The newest step that is told of; 0 without one."""
        last = self.read_last()
        return last.step if last is not None else 0

    def news(self) -> str:
        """`step 120/200 loss 0.693 4,210 samples/s`, or empty when there is nothing new to say yet."""
        self._read()
        now = time.monotonic()
        if self.last is None or self.last.step == self._said_step or now - self._said_at < _EVERY_S:
            return ""
        self._said_step, self._said_at = self.last.step, now
        return render_step(self.last, self.steps)

    def _read(self) -> None:
        try:
            with self.metrics.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:
                    self._offset = 0  # a resumed attempt cut off what its checkpoint does not hold
                self._offset = max(self._offset, size - _TAIL_BYTES)
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return
        whole, newline, _ = data.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in reversed(whole.splitlines()):
            record = parse_step(line)
            if record is not None:
                self.last = record
                return


def parse_step(line: bytes) -> StepRecord | None:
    """A line of metrics.jsonl; None for one that a writer did not finish."""
    try:
        return _STEP_RECORD.validate_python(json.loads(line))
    except (ValueError, ValidationError):
        return None


def render_step(record: StepRecord, steps: int) -> str:
    """A record for people; `steps` is 0, and numbers are missing, where a program does not tell them."""
    of = f"/{steps}" if steps else ""
    loss = f" loss {record.loss:.4g}" if record.loss is not None else ""
    rate = f" {record.samples_per_s:,.0f} samples/s" if record.samples_per_s is not None else ""
    return f"step {record.step}{of}{loss}{rate}"
