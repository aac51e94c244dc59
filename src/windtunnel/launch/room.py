"""How many more jobs Slurm takes of this user: by its limits and the queue, and by what it refused lately."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from windtunnel.errors import CommandError
from windtunnel.records.plan import Shape
from windtunnel.slurm.limits import Bound, Limits, QueueUse, read_queue_use

ANY = 1_000_000
MAX_REFUSALS = 40
"""Refusals in a row, with longer and longer waits between, after which a trial is left to the next command."""
_LONGEST_WAIT_S = 600.0


@dataclass
class _Door:
    """Of jobs with the same account, QOS and partition: what Slurm itself let us learn of their limit."""

    cap: int = ANY
    closed_until: float = float("-inf")
    refusals: int = 0


class Room:
    """Mutable. The queue is read once a submission, and again only while trials are left out."""

    def __init__(self, limits: Limits, *, poll_s: float, per_job: int = 1) -> None:
        self._limits = limits
        self._per_job = per_job
        self._poll_s = poll_s
        self._uses: list[QueueUse] = []
        self._doors: dict[QueueUse, _Door] = {}
        self._left: dict[QueueUse, int] = {}
        self._again_at = float("-inf")

    def count(self) -> int:
        """How many of the waiting trials a submission may look at: all, none, or enough to fill what became free."""
        if not self._left:
            return ANY
        now = time.monotonic()
        if now < self._again_at:
            return 0
        self._again_at = now + self._poll_s
        self._read()
        free = {use: min(left, self._measure(use) * self._per_job) for use, left in self._left.items()}
        # Those in front of them that still have no room are looked at, too, and left out again.
        shut = sum(left for use, left in self._left.items() if not free[use])
        return sum(free.values()) + shut if any(free.values()) else 0

    def begin(self, shapes: Iterable[Shape]) -> None:
        """A submission of trials of these shapes begins: what is in the queue counts."""
        for shape in shapes:
            self._left.pop(self._resolve(shape), None)
        self._again_at = time.monotonic() + self._poll_s
        self._read()

    def measure(self, shape: Shape) -> int:
        """How many jobs of the shape may be submitted now."""
        return self._measure(self._resolve(shape))

    def take(self, shape: Shape, jobs: int) -> None:
        """So many were submitted."""
        use = self._resolve(shape)
        self._uses += [use] * jobs
        door = self._doors.setdefault(use, _Door())
        door.refusals = 0
        if door.cap < ANY:
            door.cap = max(door.cap, 2 * jobs)

    def refuse(self, shape: Shape, jobs: int) -> bool:
        """Slurm refused so many together for a limit: half of them may go, or a single one later.

        False when it has refused a single one too often.
        """
        door = self._doors.setdefault(self._resolve(shape), _Door())
        door.cap = max(1, jobs // 2)
        if jobs > 1:
            return True
        door.refusals += 1
        wait_s = min(_LONGEST_WAIT_S, self._poll_s * 2 ** (door.refusals - 1))
        door.closed_until = time.monotonic() + wait_s
        return door.refusals <= MAX_REFUSALS

    def leave(self, shape: Shape, trials: int) -> None:
        """So many trials were left out."""
        use = self._resolve(shape)
        self._left[use] = self._left.get(use, 0) + trials

    def explain(self, shape: Shape) -> str:
        """The limit that leaves the fewest jobs of the shape."""
        bounds = self._limits.find_bounds(self._resolve(shape))
        tightest = min(bounds, key=self._rest_of, default=None)
        return f"{tightest.told} is {tightest.limit}" if tightest is not None else "Slurm takes no more now"

    def _measure(self, use: QueueUse) -> int:
        door = self._doors.get(use, _Door())
        if time.monotonic() < door.closed_until:
            return 0
        rests = [self._rest_of(bound) for bound in self._limits.find_bounds(use)]
        return max(0, min([door.cap, *rests]))

    def _rest_of(self, bound: Bound) -> int:
        return bound.limit - sum(bound.counts(use) for use in self._uses)

    def _resolve(self, shape: Shape) -> QueueUse:
        return self._limits.resolve(shape.account, shape.qos, shape.partition)

    def _read(self) -> None:
        try:
            self._uses = read_queue_use()
        except CommandError:
            self._uses = []  # sbatch itself will say what is wrong
