"""The lines by which a program tells its metrics: what one may say, and what all of them add up to. Pure.

`docs/command.md` is this module in words.
"""

import json
import math
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_LINE_BYTES = 1 << 16
_MAX_STEP = 1 << 53
"""Past it a step is no exact number for most of those that read it."""
_LIMIT = 2.0**63
"""Counts and seconds stay below it: they fit 64 bits, and so do not overflow when they are added or divided."""
_LEAST_S = 1e-9
"""No clock tells a shorter time: less than it is no time at all."""
_SHOWN = 40
"""Characters of a name or value that a problem tells."""
_DEVICE_CHARACTERS = 200
_KEPT = 2000
"""Newest timed lines that speed is taken from."""
_NUMBERS = (
    "loss",
    "learning_rate",
    "samples",
    "seconds",
    "time",
    "validation_loss",
    "validation_samples",
    "test_loss",
    "test_samples",
    "params",
    "peak_rss_mib",
)
_MEASURES = frozenset(_NUMBERS) - {"loss", "learning_rate", "validation_loss", "test_loss"}
"""What others are computed from. A loss may be infinite or no number: that it diverged is what it tells."""


@dataclass(frozen=True)
class Line:
    """One line; what it does not say is None."""

    step: int | None
    done: bool
    device: str
    known: Mapping[str, float]
    """The numbers that have a meaning here."""
    metrics: Mapping[str, float]
    """All others."""


@dataclass(frozen=True)
class Timed:
    """Steps between two lines: how many, their seconds, and the samples in them where they are told."""

    last_step: int
    steps: int
    seconds: float
    samples: float | None


@dataclass(frozen=True)
class Speed:
    """Of the timed lines that count; None where nothing tells."""

    samples_per_s: float | None
    step_s_median: float | None
    step_s_p90: float | None
    steps_timed: int
    steps_discarded: int


@dataclass
class Tally:
    """What an attempt's lines have told so far."""

    first_step: int | None = None
    last_step: int = 0
    done: bool = False
    device: str = ""
    newest: dict[str, float] = field(default_factory=dict)
    """Each number as it was last told."""
    metrics: dict[str, float] = field(default_factory=dict)
    timed: deque[Timed] = field(default_factory=lambda: deque(maxlen=_KEPT))
    passed_over: int = 0
    first_problem: str = ""
    started_at: float = 0.0
    _open: tuple[int, float, float | None] = (0, 0.0, 0.0)
    """Where the steps not yet timed begin: step, time, and samples since (None once a line did not tell them)."""

    def add(self, line: Line, *, now: float) -> Timed | None:
        """Take a line that came at `now`, in seconds since 1970; the steps that it timed, if it did."""
        at = line.known.get("time", now)
        step = self.last_step if line.step is None else line.step
        if self.first_step is not None and step < self.last_step:
            raise ValueError(f"step {step} after step {self.last_step}: steps do not go back")
        self.newest |= line.known
        self.metrics |= line.metrics
        self.done = self.done or line.done
        self.device = line.device or self.device
        if line.step is None:
            return None
        if self.first_step is None:
            # Nobody knows how many steps lie before it: a resumed program's first line is not its first step.
            self.first_step, self.last_step, self.started_at, self._open = step, step, at, (step, at, 0.0)
            return None
        return self._close(line, step, at)

    def pass_over(self, problem: str, *, number: int) -> None:
        """Count a line that could not be understood."""
        self.passed_over += 1
        self.first_problem = self.first_problem or f"line {number}: {problem}"

    def _close(self, line: Line, step: int, at: float) -> Timed | None:
        begin, since, samples = self._open
        self.last_step = step
        told = line.known.get("samples", None if step > begin else 0.0)
        samples = samples + told if samples is not None and told is not None else None
        seconds = line.known.get("seconds", at - since)
        if step == begin or seconds < _LEAST_S:
            self._open = (begin, since, samples)
            return None
        timed = Timed(step, step - begin, seconds, samples)
        self._open = (step, at, 0.0)
        self.timed.append(timed)
        return timed


def parse_line(data: bytes) -> Line:
    """A line's content; raises ValueError, and nothing else, saying what is wrong with it."""
    if len(data) > MAX_LINE_BYTES:
        raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
    try:
        plain = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("not JSON, or cut off") from None
    except ValueError:
        raise ValueError("a number of thousands of digits") from None
    if not isinstance(plain, dict):
        raise ValueError(f"a {type(plain).__name__}, expected an object")
    step, done = plain.pop("step", None), plain.pop("done", False)
    if step is not None and (not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= _MAX_STEP):
        raise ValueError(f"step is {_show(step)}, expected a count up to 2**53")
    if not isinstance(done, bool):
        raise ValueError(f"done is {_show(done)}, expected true or false")
    known = {name: _read_number(name, plain.pop(name)) for name in _NUMBERS if plain.get(name) is not None}
    device = plain.pop("device", "")
    metrics = {_clean(name): _read_number(name, value) for name, value in plain.items() if _is_number(value)}
    return Line(step, done, _clean(device)[:_DEVICE_CHARACTERS] if isinstance(device, str) else "", known, metrics)


def measure_speed(tally: Tally, *, discard_steps: int) -> Speed:
    """Medians over lines, those of the attempt's first `discard_steps` steps left out, unless there are no others."""
    warm = (tally.first_step or 0) + discard_steps
    kept = [item for item in tally.timed if item.last_step > warm] or list(tally.timed)
    discarded = sum(item.steps for item in tally.timed) - sum(item.steps for item in kept)
    times = sorted(item.seconds / item.steps for item in kept)
    rates = [item.samples / item.seconds for item in kept if item.samples]
    return Speed(
        samples_per_s=statistics.median(rates) if rates else None,
        step_s_median=statistics.median(times) if times else None,
        step_s_p90=times[math.ceil(0.9 * len(times)) - 1] if times else None,
        steps_timed=sum(item.steps for item in kept),
        steps_discarded=discarded,
    )


def find_shortfall(tally: Tally, *, steps: int) -> str:
    """Why a program that ended well has not done its trial; empty when it has."""
    if tally.first_step is None and not tally.done:
        wrote = f" ({tally.first_problem})" if tally.first_problem else ""
        return f"it told no step in $WINDTUNNEL_METRICS{wrote}"
    if steps and tally.last_step != steps:
        return f"its last step in $WINDTUNNEL_METRICS is {tally.last_step}, expected {steps} (workload.steps)"
    if not steps and not tally.done:
        return f'its last line in $WINDTUNNEL_METRICS, of step {tally.last_step}, does not say "done": true'
    return ""


def describe_passed_over(tally: Tally) -> tuple[str, ...]:
    """A note on the lines that could not be understood; none when there are none."""
    if not tally.passed_over:
        return ()
    lines = f"{tally.passed_over} line{'s' if tally.passed_over > 1 else ''}"
    return (f"{lines} of its metrics passed over ({tally.first_problem})",)


def _read_number(name: str, value: Any) -> float:
    told = f"{_clip(_clean(name))} is {_show(value)}"
    if not _is_number(value):
        raise ValueError(f"{told}, expected a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{told}, expected one that 64 bits hold") from None
    if name in _MEASURES and not math.isfinite(number):
        raise ValueError(f"{told}, expected a finite number")
    if name in _MEASURES and abs(number) >= _LIMIT:
        raise ValueError(f"{told}, expected one below 2**63")
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _show(value: Any) -> str:
    return _clip(repr(value))


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _clean(text: str) -> str:
    """Without halves of characters, which JSON can name and no file can hold."""
    return text.encode(errors="replace").decode()
