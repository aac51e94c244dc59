"""The batches of jobs that a sampler asks for, one after the other, in one folder: one plan, one sweep, one report.

A batch runs as every sweep does; what earlier batches found is kept beside it, and published with it.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from windtunnel.artifacts import read_artifact, to_plain, write_artifact
from windtunnel.cli.jobs import Inputs, Job, check_shared, make_inputs, plan_jobs
from windtunnel.errors import IncompleteError, LayoutError, SettingsError, StoppedError, WindtunnelError
from windtunnel.identity import read_identity
from windtunnel.launch.overview import SWEEP
from windtunnel.launch.place import write_sweep_place
from windtunnel.launch.roster import PLAN
from windtunnel.launch.run import publish_sweep, run_sweep
from windtunnel.records.plan import Plan, PlannedTrial, Pruned
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep, SweepEntry
from windtunnel.report.run import run_report
from windtunnel.settings.study import ReportStageSettings, StudySettings, SweepStageSettings

JobEnd = SweepEntry | WindtunnelError
"""How a job's trial ended, or why it is none."""


class Batches:
    """Mutable: a multirun's trials and their verdicts so far."""

    def __init__(
        self, folder: Path, *, command: str, sampled: bool = False, fixed: Collection[tuple[str, str]] = ()
    ) -> None:
        """With `sampled` a sampler chose the jobs' values, beside those that are `fixed`; else someone typed all."""
        self._folder = folder
        self._command = command
        self._sampled = sampled
        self._fixed = fixed
        self._first: StudySettings | None = None
        self._inputs: Inputs | None = None
        self._trials: dict[str, PlannedTrial] = {}
        self._refused: dict[str, Pruned] = {}
        self._entries: dict[str, SweepEntry] = {}

    def run(self, jobs: Sequence[Job], *, number: int) -> list[JobEnd]:
        """Bring a batch of jobs to its end; `number` is that of its first job in the multirun.

        An illegal layout raises LayoutError before anything is submitted. One that a sampler proposes is the end of
        its own job alone: the sampler learns from it.
        """
        if not jobs:
            raise SettingsError("the multirun has no job: name at least one value for each setting that it varies")
        first = self._first = self._first or jobs[0].settings
        check_shared([first, *(job.settings for job in jobs)])
        inputs = self._make_inputs(jobs, first)
        planned = plan_jobs(jobs, inputs, fixed=self._fixed if self._sampled else None)
        refusals = [each for each in planned if isinstance(each, LayoutError)]
        if refusals and not self._sampled:
            raise refusals[0]
        self._note(jobs, planned)
        trials = {each.id: each for each in planned if isinstance(each, PlannedTrial)}
        self._entries |= self._sweep(tuple(trials.values()), first, inputs, number=number)
        return [each if isinstance(each, LayoutError) else self._end_of(each) for each in planned]

    def _make_inputs(self, jobs: Sequence[Job], first: StudySettings) -> Inputs:
        needs_data = any(job.settings.workload.needs_data for job in jobs)
        if self._inputs is None or (needs_data and self._inputs.features is None):
            self._inputs = make_inputs(first, needs_data=needs_data)
        return self._inputs

    def _note(self, jobs: Sequence[Job], planned: Sequence[PlannedTrial | LayoutError]) -> None:
        for job, each in zip(jobs, planned, strict=True):
            if isinstance(each, LayoutError):
                name = " ".join(f"{key}={value}" for key, value in job.choices.items())
                self._refused[name] = Pruned(name, job.choices, str(each))
            else:
                self._trials.setdefault(each.id, each)

    def _sweep(
        self, trials: tuple[PlannedTrial, ...], first: StudySettings, inputs: Inputs, *, number: int
    ) -> Mapping[str, SweepEntry]:
        """The batch's sweep: in the multirun's folder the first, in folders of their own the others."""
        settings = SweepStageSettings(study=first.study, cluster=first.cluster, sweep=first.sweep)
        folder = self._folder if number == 0 else self._folder / "batches" / str(number)
        identity = read_identity(inputs.features)
        whole = Plan(first.study, identity, tuple(self._trials.values()), tuple(self._refused.values()))
        write_artifact(self._folder / PLAN, whole)
        write_sweep_place(settings, out=self._folder / SWEEP, store=inputs.store, command=self._command)
        if not trials:
            return {}
        if folder != self._folder:
            write_artifact(folder / PLAN, Plan(first.study, identity, trials, ()))
        stopped: StoppedError | None = None
        try:
            sweep = run_sweep(
                settings,
                plan=folder / PLAN,
                features=inputs.features,
                topology=inputs.topology,
                store=inputs.store,
                import_root=str(Path.cwd()),
                out=folder / SWEEP,
            )
        except IncompleteError as error:
            stopped = error if isinstance(error, StoppedError) else None
            print(f"windtunnel: {error}", flush=True)
            sweep = read_artifact(folder / PARTIAL_SWEEP, Sweep)
        entries = {entry.trial_id: entry for entry in sweep.entries}
        if folder != self._folder:
            self._publish(settings, sweep.trials_dir, {**self._entries, **entries})
        published = self._folder / SWEEP
        _report(first, self._folder, published if published.is_file() else published.with_name(PARTIAL_SWEEP))
        if stopped is not None:
            raise stopped  # a sampler would begin the next batch
        return entries

    def _publish(self, settings: SweepStageSettings, trials_dir: str, entries: Mapping[str, SweepEntry]) -> None:
        """All batches' verdicts, beside the plan of all batches."""
        sweep = Sweep(settings.study, trials_dir, tuple(entries.values()), to_plain(settings))
        try:
            publish_sweep(sweep, settings, self._folder / SWEEP, pending=0)
        except IncompleteError:
            pass  # what there is was written, and the batch has said why

    def _end_of(self, trial: PlannedTrial) -> JobEnd:
        stopped = WindtunnelError(f"{trial.name}: the sweep ended before it")
        return self._entries.get(trial.id, stopped)


def render_train(overrides: Sequence[str], *options: str) -> str:
    """The command that starts the same jobs again, as one types it."""
    return shlex.join(["windtunnel", "train", *options, *overrides])


def _report(study: StudySettings, folder: Path, sweep: Path) -> None:
    run_report(
        ReportStageSettings(study=study.study, report=study.report, cluster=study.cluster),
        plan=folder / PLAN,
        sweep=sweep,
        checkpoints=None,
        latency=None,
        models=None,
        topology=None,
        collectives=None,
        device=None,
        benchmarks=[],
        out=folder / "report.html",
        metrics=folder / "metrics.parquet",
    )
