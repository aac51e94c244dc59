"""Trials as tasks of Slurm job arrays, one array a shape, within the user's limits."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from windtunnel.errors import CommandError, FullQueueError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import find_stderr
from windtunnel.launch.packs import submit_packs, supply_command
from windtunnel.launch.room import Room
from windtunnel.launch.shapes import Pack, cut_arrays, pack_within
from windtunnel.launch.slurmwatch import SlurmWatch
from windtunnel.ledger.reconcile import JobSight
from windtunnel.ledger.story import Submission
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.limits import Limits, read_limits
from windtunnel.slurm.queue import QueuedJob, cancel_jobs, find_task, read_queue_by_name

_RECOVERY_S = 1.0


class SlurmBackend:
    """Submits, and looks at all jobs at once. A job id is squeue's: `12`, or `12_3` in an array."""

    survives = True

    def __init__(self, context: SweepContext, *, say: Callable[[str], None], limits: Limits | None = None) -> None:
        """`limits` are read before the first submission where they are not given."""
        self.poll_s = context.sweep.marker_poll_s
        self._context = context
        self._say = say
        self._limits = limits
        self._asked: Future[Limits] | None = None
        self._room: Room | None = None
        self._told = False
        self._recovery: tuple[str, float, Mapping[str, QueuedJob]] = "", float("-inf"), {}
        held_s = context.sweep.held_hours * 3600
        self._watch = SlurmWatch(poll_s=context.sweep.poll_s, say=say, held_s=held_s)

    @property
    def silent_s(self) -> float:
        """Seconds for which squeue has not answered."""
        return self._watch.silent_s

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        """Slurm queues what does not run yet, up to what it takes of a user."""
        if self._limits is None and self._asked is None:
            # Slurm answers while the trials' files are written.
            pool = ThreadPoolExecutor(1)
            self._asked = pool.submit(read_limits)
            pool.shutdown(wait=False)
        if self._limits is None:
            return waiting
        room = self._open()[1]
        picked = room.pick(waiting)
        self._tell_left(room)
        return picked

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        """One job array a shape, as far as there is room: the rest waits.

        Each trial's ledger names the submission before, and its job after.
        """
        submitted = Submitted({})
        limits, room = self._open()
        room.begin()
        packs = pack_within(trials, limits, per_job=self._context.sweep.trials_per_job)
        # A successor waits for all jobs of its name to end: each trial then has a name of its own.
        limit = 1 if self._context.sweep.successor else limits.max_array_tasks
        for array in cut_arrays(packs, limit=limit):
            part = self._submit_array(array, room, exclude, seen)
            submitted.job_ids.update(part.job_ids)
            submitted.refusals.update(part.refusals)
            if part.unanswered:
                # Each further try would hold the driver up for as long as Slurm's time-outs are.
                submitted.unanswered.update(part.unanswered)
                break
        self._watch.expect(submitted.job_ids.values())
        return submitted

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        """The job of a submission's name, and of the trial's place in its array."""
        # All trials of an array are asked for in a row.
        name, asked_at, queue = self._recovery
        if name != submission.name or time.monotonic() - asked_at > _RECOVERY_S:
            queue = read_queue_by_name(submission.name)
            self._recovery = submission.name, time.monotonic(), queue
        job_id = find_task(queue, submission.index)
        if job_id:
            supply_command(trial, self._context, submission, job_id=job_id)
        return job_id

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        """The last known sights; asks Slurm when they are older than `sweep.poll_s`, or sooner at need."""
        return self._watch.look(job_ids, urgent=urgent)

    def explain(self, job_id: str) -> str:
        """Last line of the supervisor's stderr."""
        return read_last_line(find_stderr(self._context.jobs_dir, job_id))

    def stop(self, job_ids: Collection[str]) -> None:
        """Jobs go on; the same command finds them again."""

    def cancel(self, job_ids: Collection[str]) -> None:
        """scancel."""
        problem = cancel_jobs(job_ids)
        if problem:
            raise CommandError(problem)

    def close(self) -> None:
        """Nothing of a job is left on this host."""

    def _open(self) -> tuple[Limits, Room]:
        if self._limits is None:
            try:
                self._limits = self._asked.result() if self._asked is not None else read_limits()
            except CommandError as error:
                self._say(f"Slurm's limits are not known: its defaults are taken for them: {error}")
                self._limits = Limits()
        if self._room is None:
            sweep = self._context.sweep
            jobs_each = 2 if sweep.successor else 1
            self._room = Room(self._limits, poll_s=sweep.poll_s, per_job=sweep.trials_per_job, jobs_each=jobs_each)
        return self._limits, self._room

    def _submit_array(
        self, packs: tuple[Pack, ...], room: Room, exclude: Sequence[str], seen: Mapping[str, int] | None
    ) -> Submitted:
        shape = packs[0][0].shape
        while jobs := min(room.measure(shape), len(packs)):
            try:
                submitted = submit_packs(packs[:jobs], self._context, exclude=exclude, seen=seen)
            except FullQueueError as error:
                if not room.refuse(shape, jobs):
                    return Submitted({}, {trial.id: str(error) for pack in packs for trial in pack})
                continue
            room.take(shape, len(set(submitted.job_ids.values())))
            break
        else:
            submitted = Submitted({})
        self._leave(packs[jobs:], room)
        return submitted

    def _leave(self, packs: Sequence[Pack], room: Room) -> None:
        if packs:
            room.leave(packs[0][0].shape, sum(len(pack) for pack in packs))
            self._tell_left(room)

    def _tell_left(self, room: Room) -> None:
        told = "" if self._told else room.tell_left()
        if told:
            self._say(told)
            self._told = True
