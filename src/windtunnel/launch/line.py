"""The queue, as far as it holds jobs that wait behind a trial's present one."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import submit_array, supply_call
from windtunnel.launch.shapes import ENDS_AT_ONCE, render_parameters
from windtunnel.ledger.story import Succession
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.queue import base_of, read_queue_by_name

BEHIND = {**ENDS_AT_ONCE, "dependency": "singleton"}
"""Slurm starts it once no job of the name that was submitted before it waits or runs."""


class Line(Protocol):
    """The queue, as far as it holds successors. Its errors are those of a submission."""

    def queue(self, trial: PlannedTrial, name: str, *, exclude: Sequence[str] = ()) -> str:
        """Put the trial's next job behind those of that name, on none of the nodes in `exclude`; its id."""
        ...

    def find(self, trial: PlannedTrial, succession: Succession, known: Collection[str]) -> str:
        """A job of that succession's name that is none of the known ones; empty without any."""
        ...


class SlurmLine:
    """Slurm's queue."""

    def __init__(self, context: SweepContext) -> None:
        self._context = context

    def queue(self, trial: PlannedTrial, name: str, *, exclude: Sequence[str] = ()) -> str:
        """sbatch, with the dependency `singleton`."""
        command = self._context.command_of(trial, succeeds=True)
        cluster = self._context.cluster
        parameters = render_parameters(trial.shape, cluster, name=name, exclude=exclude, options=BEHIND)
        return submit_array([command], parameters, folder=self._context.jobs_dir)[0]

    def find(self, trial: PlannedTrial, succession: Succession, known: Collection[str]) -> str:
        """By squeue; the job is given the command that it waits for."""
        found = sorted(read_queue_by_name(succession.name).keys() - set(known), key=lambda each: int(base_of(each)))
        if not found:
            return ""
        command = self._context.command_of(trial, succeeds=True)
        # Another user's folder may be closed to this one: then the job ends without a command.
        with suppress(PermissionError):
            supply_call(command, trial.shape, folder=Path(succession.jobs_dir), job_id=found[0])
        return found[0]
