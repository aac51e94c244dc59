"""How many more jobs Slurm takes of this user: by its limits and the queue, and by what it refused lately."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.errors import CommandError
from windtunnel.records.plan import PlannedTrial, Shape
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
    """Mutable. The queue is read once a submission, and else no more often than each `poll_s` while trials wait."""

    def __init__(self, limits: Limits, *, poll_s: float, per_job: int = 1, jobs_each: int = 1) -> None:
        """`jobs_each` is how many jobs one submitted now brings into the queue, with those that follow it."""
        self._limits = limits
        self._jobs_each = jobs_each
        self._per_job = per_job
        self._poll_s = poll_s
        self._uses: list[QueueUse] = []
        self._doors: dict[QueueUse, _Door] = {}
        self._left: dict[QueueUse, int] = {}
        self._again_at = float("-inf")
        self._fresh = False

    def pick(self, waiting: Sequence[PlannedTrial]) -> Sequence[PlannedTrial]:
        """The waiting trials that there is room for, in order: those whose limit is full do not hold up others.

        As long as none but those that were left out wait, they do so until the next poll.
        """
        if self._left and time.monotonic() < self._again_at and len(waiting) <= sum(self._left.values()):
            return ()
        if time.monotonic() >= self._again_at:
            self._read()
        self._left = {}
        tally, picked = _Tally(self, self._per_job), []
        for trial in waiting:
            if tally.take(trial.shape):
                picked.append(trial)
            else:
                self.leave(trial.shape, 1)
        return picked

    def begin(self) -> None:
        """A submission begins: what is in the queue counts, unless it was read just now for picking the trials."""
        if not self._fresh:
            self._read()
        self._fresh = False

    def measure(self, shape: Shape) -> int:
        """How many jobs of the shape may be submitted now."""
        return max(0, min(self.list_rests(shape).values()))

    def take(self, shape: Shape, jobs: int) -> None:
        """So many were submitted."""
        use = self._resolve(shape)
        self._uses += [use] * jobs * self._jobs_each
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
        """So many trials were left out, after all."""
        use = self._resolve(shape)
        self._left[use] = self._left.get(use, 0) + trials

    def tell_left(self) -> str:
        """How many trials wait for room, and for which limit most of them do; empty without any."""
        if not self._left:
            return ""
        bounds = self._limits.find_bounds(max(self._left, key=lambda use: self._left[use]))
        tightest = min(bounds, key=self._rest_of, default=None)
        why = f"{tightest.told} is {tightest.limit}" if tightest is not None else "Slurm takes no more now"
        return f"{sum(self._left.values())} trials wait for room in the queue ({why}): they follow as jobs end"

    def list_rests(self, shape: Shape) -> dict[QueueUse | Bound, int]:
        """How many more jobs of the shape each limit on them leaves; the first one is what Slurm let us learn."""
        use = self._resolve(shape)
        door = self._doors.get(use, _Door())
        learnt = 0 if time.monotonic() < door.closed_until else door.cap
        return {use: learnt, **{bound: self._fit_into(bound) for bound in self._limits.find_bounds(use)}}

    def _fit_into(self, bound: Bound) -> int:
        # A limit that is too small for those that follow still lets the first ones in.
        return self._rest_of(bound) // max(1, min(self._jobs_each, bound.limit))

    def _rest_of(self, bound: Bound) -> int:
        return bound.limit - sum(bound.counts(use) for use in self._uses)

    def _resolve(self, shape: Shape) -> QueueUse:
        return self._limits.resolve(shape.account, shape.qos, shape.partition)

    def _read(self) -> None:
        self._again_at = time.monotonic() + self._poll_s
        self._fresh = True
        try:
            self._uses = read_queue_use()
        except CommandError:
            self._uses = []  # sbatch itself will say what is wrong


class _Tally:
    """What the limits still leave while trials are picked. Those of a shape share a job, as many as it takes."""

    def __init__(self, room: Room, per_job: int) -> None:
        self._room = room
        self._per_job = per_job
        self._rests: dict[QueueUse | Bound, int] = {}
        self._keys: dict[Shape, tuple[QueueUse | Bound, ...]] = {}
        self._places: dict[Shape, int] = {}

    def take(self, shape: Shape) -> bool:
        """Take a place for one more trial, if there is one."""
        places = self._places.get(shape, 0) or self._open_job(shape)
        self._places[shape] = max(0, places - 1)
        return places > 0

    def _open_job(self, shape: Shape) -> int:
        keys = self._keys.get(shape)
        if keys is None:
            rests = self._room.list_rests(shape)
            self._rests = rests | self._rests
            keys = self._keys[shape] = tuple(rests)
        if any(self._rests[key] <= 0 for key in keys):
            return 0
        for key in keys:
            self._rests[key] -= 1
        return self._per_job
