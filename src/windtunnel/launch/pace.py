"""How often the scheduler may be asked: once a regular interval, and a few times more when it is urgent. Pure."""

from dataclasses import dataclass

URGENT_S = 3.0
"""Seconds between two looks that are urgent."""
_BURST = 4.0


@dataclass
class Pace:
    """Mutable. Urgent looks come out of an allowance that grows by one each `poll_s`, up to 4.

    So however many jobs end in a row, over time there are at most two looks each `poll_s`.
    """

    poll_s: float
    allowance: float = _BURST
    asked_at: float = float("-inf")
    counted_at: float | None = None

    def may_ask(self, now: float, *, urgent: bool) -> bool:
        """Whether to ask at `now` (a monotonic clock, in seconds), which is then taken to be done."""
        waited_s = now - self.asked_at
        if waited_s >= self.poll_s:
            self._count(now)
        elif urgent and waited_s >= min(URGENT_S, self.poll_s) and self._count(now) >= 1:
            self.allowance -= 1
        else:
            return False
        self.asked_at = now
        return True

    def _count(self, now: float) -> float:
        grown = 0.0 if self.counted_at is None else (now - self.counted_at) / max(self.poll_s, 1e-9)
        self.counted_at = now
        self.allowance = min(_BURST, self.allowance + grown)
        return self.allowance
