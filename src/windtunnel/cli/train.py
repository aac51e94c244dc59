"""`windtunnel train`: Hydra's command line, single or multirun, with the workflow's own plan, sweep and report."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.cli.checks import check_partitions
from windtunnel.cli.compose import cut_trial, read_app_run, read_study, run_app, show_app, to_plain_dict
from windtunnel.cli.project import project_root, snakefile
from windtunnel.cli.studies import features_key, list_names
from windtunnel.cli.tools import add_train_options
from windtunnel.errors import CommandError, IncompleteError, SettingsError, StudyError
from windtunnel.identity import read_identity
from windtunnel.launch.run import run_sweep
from windtunnel.planner.space import plan_trial
from windtunnel.records.plan import Plan, PlannedTrial
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep
from windtunnel.report.run import run_report
from windtunnel.settings.study import ReportStageSettings, StudySettings, SweepStageSettings

WORKFLOW = Path("conf/workflow.yaml")


@dataclass(frozen=True)
class Job:
    """One combination of the command line's values."""

    settings: StudySettings
    choices: dict[str, str]


@dataclass(frozen=True)
class Inputs:
    """What jobs of one data set and one cluster share."""

    features: Path
    topology: Path | None
    store: Path


def run_train(words: Sequence[str]) -> int:
    """Train what the command line says and print a ranking. Returns the exit code."""
    args = _parse(words)
    overrides = list(args.overrides)
    project = Path.cwd()
    if not any(word.startswith("study=") for word in overrides):
        overrides.append(f"study={default_study(project)}")
    if args.cfg:
        show_app(overrides, part=args.cfg, project=project)
        return 0
    extra = ["hydra/launcher=windtunnel"] if args.multirun else []
    run_app(train_once, [*overrides, *extra], multirun=args.multirun, project=project)
    return 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="windtunnel train")
    add_train_options(parser)
    return parser.parse_intermixed_args(words)


def train_once(config: Any) -> None:
    """Hydra's task function. The launcher takes its jobs' settings and runs them as trials; alone it runs its own."""
    run = read_app_run()
    run_jobs([read_job(to_plain_dict(config), run.study, run.overrides)], folder=run.folder)


train_once.windtunnel_task = True  # type: ignore[attr-defined]  # our launcher runs such a function's jobs as trials


def read_job(plain: Mapping[str, Any], study: str, overrides: Sequence[str]) -> Job:
    """A composed job; its choices are the overrides, less the study's name."""
    pairs = (override.lstrip("+").split("=", 1) for override in overrides if "=" in override)
    return Job(read_study(plain, study), {key: value for key, value in pairs if key != "study"})


def run_jobs(jobs: Sequence[Job], *, folder: Path) -> Sweep:
    """Plan, sweep and report `jobs` in `folder`. The sweep's entries name their trial by id.

    Raises LayoutError for the first illegal job, before anything is submitted.
    """
    first = jobs[0].settings
    check_shared([job.settings for job in jobs])
    inputs = make_inputs(first)
    plan = folder / "plan.json"
    trials = plan_jobs(jobs, inputs)
    unique = tuple({trial.id: trial for trial in trials}.values())
    write_artifact(plan, Plan(first.study, read_identity(inputs.features), unique, ()))
    settings = SweepStageSettings(study=first.study, cluster=first.cluster, sweep=first.sweep)
    out = folder / "sweep.json"
    try:
        return run_sweep(
            settings,
            plan=plan,
            features=inputs.features,
            topology=inputs.topology,
            store=inputs.store,
            import_root=str(Path.cwd()),
            out=out,
        )
    except IncompleteError:
        out = folder / PARTIAL_SWEEP
        raise
    finally:
        if out.is_file():
            _report(first, folder, plan, out)


def plan_jobs(jobs: Sequence[Job], inputs: Inputs) -> tuple[PlannedTrial, ...]:
    """The trial of each job, told apart by what varies; raises LayoutError for an illegal one."""
    identity = read_identity(inputs.features)
    root = str(Path.cwd())
    constant = set.intersection(*(set(job.choices.items()) for job in jobs)) if len(jobs) > 1 else set()
    return tuple(
        plan_trial(
            cut_trial(job.settings),
            choices=dict(pair for pair in job.choices.items() if pair not in constant),
            identity=identity,
            import_root=root,
        )
        for job in jobs
    )


def check_shared(settings: Sequence[StudySettings]) -> None:
    """Refuse jobs that differ in what trials of one sweep share."""
    for group in ("data", "features", "cluster", "sweep", "paths"):
        if len({hash_json(getattr(study, group)) for study in settings}) > 1:
            raise StudyError(f"a multirun cannot vary {group}.*: it is shared by all its trials; start one for each")


def make_inputs(study: StudySettings) -> Inputs:
    """The study's feature shards, and on Slurm its topology; the workflow makes what is missing or out of date."""
    store = Path(study.paths.store or study.paths.results)
    features = store / "features" / features_key(study) / "MANIFEST.json"
    on_slurm = study.cluster.kind == "slurm"
    check_partitions({study.cluster.partition} if on_slurm else set())
    topology = store / "cluster" / study.cluster.partition / "topology.json" if on_slurm else None
    targets = [str(path) for path in (features, topology) if path is not None]
    profile = project_root() / "cluster_profiles" / ("slurm" if on_slurm else "local")
    _run_workflow(study, profile, targets)
    return Inputs(features, topology, store)


def default_study(project: Path) -> str:
    """The first study of the project's workflow; `quickstart` without one. Raises SettingsError for a broken file."""
    path = project / WORKFLOW
    try:
        plain = yaml.safe_load(path.read_text()) if path.is_file() else None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not YAML in UTF-8: {error}; mend it, or give study=NAME") from None
    names = list_names(plain) if isinstance(plain, dict) else []
    return names[0] if names else "quickstart"


def _run_workflow(study: StudySettings, profile: Path, targets: Sequence[str]) -> None:
    # The values themselves are handed on, since the command line may have changed them.
    groups = {"data": study.data, "features": study.features, "cluster": study.cluster, "paths": study.paths}
    overrides = [
        f"++{group}.{key}={_quote(value)}"
        for group, settings in groups.items()
        for key, value in settings.model_dump(mode="json").items()
    ]
    config = {"study": study.study, "overrides": overrides}
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile()), "--profile", str(profile)]
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="windtunnel-") as file:
        json.dump(config, file)
        file.flush()
        # In place of the profile's own configfile, which names a cluster: all its values are among the overrides.
        finished = subprocess.run([*argv, "--quiet", "all", "--configfile", file.name, "--", *targets], check=False)
    if finished.returncode:
        raise CommandError(f"the workflow could not make {' and '.join(targets)}: its message is above")


def _quote(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_quote(item) for item in value) + "]"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "null" if value is None else str(value)


def _report(study: StudySettings, folder: Path, plan: Path, sweep: Path) -> None:
    run_report(
        ReportStageSettings(study=study.study, report=study.report, cluster=study.cluster),
        plan=plan,
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
