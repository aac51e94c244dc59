"""Trials as tasks of Slurm job arrays, one array a shape."""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from windtunnel.errors import ClusterError, CommandError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import find_stderr, submit_array, supply_call
from windtunnel.launch.shapes import cut_arrays, render_parameters
from windtunnel.launch.slurmwatch import SlurmWatch
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import JobSight
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.queue import QueuedJob, read_queue_by_name

_ROOM = 1_000_000
_RECOVERY_S = 1.0


class SlurmBackend:
    """Submits, and looks at all jobs at once. A job id is squeue's: `12`, or `12_3` in an array."""

    survives = True

    def __init__(self, context: SweepContext, *, say: Callable[[str], None]) -> None:
        self.poll_s = context.sweep.marker_poll_s
        self._context = context
        self._recovery: tuple[str, float, Mapping[str, QueuedJob]] = "", float("-inf"), {}
        self._watch = SlurmWatch(poll_s=context.sweep.poll_s, say=say)

    def room(self, active: int) -> int:
        """Slurm queues what does not fit."""
        return _ROOM

    def submit(self, trials: Sequence[PlannedTrial]) -> Submitted:
        """One job array a shape; each trial's ledger names the submission before, and its job after."""
        submitted = Submitted({})
        for group in cut_arrays(trials):
            part = self._submit_group(group)
            submitted.job_ids.update(part.job_ids)
            submitted.refusals.update(part.refusals)
            if part.unanswered:
                # Each further try would hold the driver up for as long as Slurm's time-outs are.
                submitted.unanswered.update(part.unanswered)
                break
        self._watch.expect(submitted.job_ids.values())
        return submitted

    def recover(self, trial: PlannedTrial, submission: str, index: int) -> str:
        """The job of a submission's name, and of the trial's place in its array."""
        # All trials of an array are asked for in a row.
        name, asked_at, queue = self._recovery
        if name != submission or time.monotonic() - asked_at > _RECOVERY_S:
            queue = read_queue_by_name(submission)
            self._recovery = submission, time.monotonic(), queue
        job_id = _find_task(queue, index)
        if job_id:
            self._supply(trial, job_id)
        return job_id

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        """The last known sights; asks Slurm when they are older than `sweep.poll_s`, or sooner at need."""
        return self._watch.look(job_ids, urgent=urgent)

    def explain(self, job_id: str) -> str:
        """Last line of the supervisor's stderr."""
        return read_last_line(find_stderr(self._context.jobs_dir, job_id))

    def stop(self, job_ids: Collection[str]) -> None:
        """Jobs go on; the same command finds them again."""

    def close(self) -> None:
        """Nothing of a job is left on this host."""

    def _submit_group(self, group: Sequence[PlannedTrial]) -> Submitted:
        name = f"windtunnel-{self._context.study}-{uuid.uuid4().hex[:8]}"
        for index, trial in enumerate(group):
            append_event(self._path(trial), "submitting", attempt=0, submission=name, index=index)
        parameters = render_parameters(group[0].shape, self._context.cluster, name=name)
        commands = [self._context.command_of(trial) for trial in group]
        try:
            job_ids = submit_array(commands, parameters, folder=self._context.jobs_dir)
        except (ClusterError, CommandError) as error:
            return self._settle_failure(group, name, error)
        return Submitted(self._write_ids(zip(group, job_ids, strict=True), name))

    def _settle_failure(
        self, group: Sequence[PlannedTrial], name: str, error: ClusterError | CommandError
    ) -> Submitted:
        # Only the answer may have been lost: Slurm is asked before the error is believed.
        try:
            queue = read_queue_by_name(name)
        except CommandError:
            queue = {}
        found = [(trial, job_id) for index, trial in enumerate(group) if (job_id := _find_task(queue, index))]
        for trial, job_id in found:
            self._supply(trial, job_id)
        ids = self._write_ids(found, name)
        rest = {trial.id: str(error) for trial in group if trial.id not in ids}
        refused = isinstance(error, ClusterError)
        return Submitted(ids, rest if refused else {}, {} if refused else rest)

    def _write_ids(self, jobs: Iterable[tuple[PlannedTrial, str]], name: str) -> dict[str, str]:
        ids = {}
        for trial, job_id in jobs:
            append_event(self._path(trial), "submitted", attempt=0, job_id=job_id, submission=name)
            ids[trial.id] = job_id
        return ids

    def _supply(self, trial: PlannedTrial, job_id: str) -> None:
        supply_call(self._context.command_of(trial), trial.shape, folder=self._context.jobs_dir, job_id=job_id)

    def _path(self, trial: PlannedTrial) -> Path:
        return self._context.folder_of(trial).path


def _find_task(jobs: Iterable[str], index: int) -> str:
    wanted = {job_id for job_id in jobs if job_id.endswith(f"_{index}") or ("_" not in job_id and index == 0)}
    return next(iter(sorted(wanted)), "")
