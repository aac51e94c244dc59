"""Trials as tasks of Slurm job arrays, one array a shape."""

import uuid
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from windtunnel.errors import ClusterError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import find_stderr, submit_array
from windtunnel.launch.shapes import group_by_shape, render_parameters
from windtunnel.launch.slurmwatch import SlurmWatch
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import JobSight
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.queue import read_queue_by_name

_ROOM = 1_000_000


class SlurmBackend:
    """Submits, and looks at all jobs at once. A job id is squeue's: `12`, or `12_3` in an array."""

    survives = True

    def __init__(self, context: SweepContext, *, say: Callable[[str], None]) -> None:
        self.poll_s = context.sweep.marker_poll_s
        self._context = context
        self._watch = SlurmWatch(poll_s=context.sweep.poll_s, say=say)

    def room(self, active: int) -> int:
        """Slurm queues what does not fit."""
        return _ROOM

    def submit(self, trials: Sequence[PlannedTrial]) -> Submitted:
        """One job array a shape; each trial's ledger names the submission before, and its job after."""
        ids: dict[str, str] = {}
        refusals: dict[str, str] = {}
        for group in group_by_shape(trials):
            try:
                ids |= self._submit_group(group)
            except ClusterError as error:
                refusals |= dict.fromkeys((trial.id for trial in group), str(error))
        self._watch.expect(ids.values())
        return Submitted(ids, refusals)

    def recover(self, submission: str, index: int) -> str:
        """The job of a submission's name, and of the trial's place in its array."""
        jobs = read_queue_by_name(submission)
        wanted = {job_id for job_id in jobs if job_id.endswith(f"_{index}") or ("_" not in job_id and index == 0)}
        return next(iter(sorted(wanted)), "")

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

    def _submit_group(self, group: Sequence[PlannedTrial]) -> dict[str, str]:
        name = f"windtunnel-{self._context.study}-{uuid.uuid4().hex[:8]}"
        for index, trial in enumerate(group):
            append_event(self._path(trial), "submitting", attempt=0, submission=name, index=index)
        parameters = render_parameters(group[0].shape, self._context.cluster, name=name)
        commands = [self._context.command_of(trial) for trial in group]
        submitted = submit_array(commands, parameters, folder=self._context.jobs_dir)
        for trial, job_id in zip(group, submitted, strict=True):
            append_event(self._path(trial), "submitted", attempt=0, job_id=job_id, submission=name)
        return {trial.id: job_id for trial, job_id in zip(group, submitted, strict=True)}

    def _path(self, trial: PlannedTrial) -> Path:
        return self._context.folder_of(trial).path
