"""The jobs of a multirun: their settings, the inputs that they share, and the trial that each one is."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.artifacts import hash_json
from windtunnel.cli.checks import check_partitions
from windtunnel.cli.compose import cut_trial, read_study
from windtunnel.cli.project import project_root, snakefile
from windtunnel.cli.studies import features_key
from windtunnel.errors import CommandError, LayoutError, StudyError
from windtunnel.identity import read_identity
from windtunnel.modes import open_store
from windtunnel.planner.space import plan_trial
from windtunnel.records.plan import PlannedTrial
from windtunnel.settings.study import StudySettings


@dataclass(frozen=True)
class Job:
    """One combination of the command line's values."""

    settings: StudySettings
    choices: dict[str, str]


@dataclass(frozen=True)
class Inputs:
    """What jobs of one data set and one cluster share."""

    features: Path | None
    topology: Path | None
    store: Path


def read_job(plain: Mapping[str, Any], study: str, overrides: Sequence[str]) -> Job:
    """A composed job; its choices are the overrides, less the study's name."""
    return Job(read_study(plain, study), read_choices(overrides))


def read_choices(overrides: Sequence[str]) -> dict[str, str]:
    """What overrides choose, less the study's name."""
    pairs = (override.lstrip("+").split("=", 1) for override in overrides if "=" in override)
    return {key: value for key, value in pairs if key != "study"}


def plan_jobs(
    jobs: Sequence[Job], inputs: Inputs, *, fixed: Collection[tuple[str, str]] | None = None
) -> tuple[PlannedTrial | LayoutError, ...]:
    """The trial of each job, told apart by what varies; for an illegal one, why it is none.

    What varies is what is not `fixed`; by default, what these jobs do not share.
    """
    identity = read_identity(inputs.features)
    root = str(Path.cwd())
    if fixed is None:
        fixed = set.intersection(*(set(job.choices.items()) for job in jobs)) if len(jobs) > 1 else ()

    def plan(job: Job) -> PlannedTrial | LayoutError:
        choices = {key: value for key, value in job.choices.items() if (key, value) not in fixed}
        try:
            return plan_trial(cut_trial(job.settings), choices=choices, identity=identity, import_root=root)
        except LayoutError as error:
            return error

    return tuple(plan(job) for job in jobs)


def check_shared(settings: Sequence[StudySettings]) -> None:
    """Refuse jobs that differ in what trials of one sweep share."""
    if len({study.workload.needs_data for study in settings}) > 1:
        raise StudyError(
            "a multirun cannot mix workloads that read features and such that do not: start one for each"
        )
    for group in ("data", "features", "cluster", "sweep", "paths"):
        if len({hash_json(getattr(study, group)) for study in settings}) > 1:
            raise StudyError(f"a multirun cannot vary {group}.*: it is shared by all its trials; start one for each")


def make_inputs(study: StudySettings, *, needs_data: bool = True) -> Inputs:
    """The study's feature shards, and on Slurm its topology; the workflow makes what is missing or out of date."""
    store = Path(study.paths.store or study.paths.results)
    open_store(store, study.paths.mode)
    features = store / "features" / features_key(study) / "MANIFEST.json" if needs_data else None
    on_slurm = study.cluster.kind == "slurm"
    check_partitions({study.cluster.partition} if on_slurm else set())
    topology = store / "cluster" / study.cluster.partition / "topology.json" if on_slurm else None
    targets = [str(path) for path in (features, topology) if path is not None]
    profile = project_root() / "cluster_profiles" / ("slurm" if on_slurm else "local")
    if targets:
        _run_workflow(study, profile, targets)
    return Inputs(features, topology, store)


def _run_workflow(study: StudySettings, profile: Path, targets: Sequence[str]) -> None:
    # The values themselves are handed on, since the command line may have changed them.
    groups = {name: getattr(study, name) for name in ("data", "features", "kernels", "cluster", "paths")}
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
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_quote(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_quote(item) for item in value) + "]"
    if isinstance(value, str):
        # OmegaConf would look `${...}` up; Hydra takes backslashes for an escape before a quote alone.
        literal = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)
        return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + found[2].replace("'", "\\'"), literal) + "'"
    return "null" if value is None else str(value)
