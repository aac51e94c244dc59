"""What the workflow asks of the studies it builds: each stage's settings, by the name of its file.

The text of a settings file is a rule's `params`, so that Snakemake reruns a stage when a value it uses changed.
"""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from windtunnel.artifacts import hash_json, to_plain
from windtunnel.cli.checks import (
    check_all,
    check_data,
    check_kernels,
    check_partitions,
    check_paths,
    check_programs,
    hash_user_models,
    locate_input,
)
from windtunnel.cli.compose import compose_candidates, compose_study, cut_values
from windtunnel.errors import SettingsError, StudyError
from windtunnel.identity import read_identity
from windtunnel.planner.run import needs_data, split_space
from windtunnel.settings.base import Settings
from windtunnel.settings.idle import find_idle
from windtunnel.settings.study import (
    FeaturizeSettings,
    LatencyStageSettings,
    PlanSettings,
    ReportStageSettings,
    StudySettings,
    SweepStageSettings,
    TraceSettings,
)

KNOWN_KEYS = ("studies", "study", "cluster", "overrides", "pathvars")
"""What `conf/workflow.yaml` and `snakemake --config` may set."""
_OWNERS = {"study": "name", "features": "features_key", "dataset": "dataset", "partition": "partition"}
"""Wildcards, and the attribute of a study that each is."""
_NOT_MEASURED = {
    "account",
    "qos",
    "setup",
    "sbatch",
    "gpu_type",
    "time",
    "memory",
    "max_age_days",
    "cost_per_node_hour",
    "currency",
}


@dataclass(frozen=True)
class ComposedStudy:
    """One study: its settings, and the names of what it shares with others."""

    name: str
    settings: StudySettings
    plan: PlanSettings
    features_key: str

    @property
    def dataset(self) -> str:
        return self.settings.data.dataset

    @property
    def needs_data(self) -> bool:
        """Whether any trial reads the dataset's features."""
        return needs_data(self.plan)

    @property
    def partition(self) -> str:
        return self.settings.cluster.partition

    @property
    def slurm_partitions(self) -> set[str]:
        """Partitions that its jobs go to; none on this machine."""
        if self.settings.cluster.kind != "slurm":
            return set()
        return {self.partition, *(rule.partition for rule in self.plan.shapes if rule.partition)}


@dataclass(frozen=True)
class Studies:
    """All studies of a run. Its methods take a job's wildcards, and are a rule's inputs, parameters and resources."""

    by_name: dict[str, ComposedStudy]
    texts: dict[str, str]
    """Every settings file's text, by `<owner>/<name>`."""
    results: str
    store: str
    mode: str = "own"
    """Who may use the store."""

    def of(self, wildcards: Any) -> ComposedStudy:
        """The job's study, or the first that uses what the job makes."""
        wanted = {key: getattr(wildcards, key) for key in _OWNERS if hasattr(wildcards, key)}
        return next(
            study
            for study in self.by_name.values()
            if all(getattr(study, _OWNERS[key]) == value for key, value in wanted.items())
        )

    def settings_text(self, wildcards: Any) -> str:
        """Text of a settings file; as a parameter it reruns the rule when a value changed."""
        return self.texts[f"{wildcards.owner}/{wildcards.name}"]

    def sources_of(self, wildcards: Any) -> str:
        """Hash of the code that the study's trials run: ours, torch's version, and the user's own models."""
        return hash_json([vars(read_identity(None)), hash_user_models(self.of(wildcards).plan, Path.cwd())])

    def raw_files(self, wildcards: Any) -> list[str]:
        """Where the dataset's raw files lie."""
        return [str(locate_input(file, Path.cwd())) for file in self.of(wildcards).settings.data.files]

    def shards_of(self, wildcards: Any) -> str:
        """Manifest of the shards that the features are computed from."""
        return f"{self.store}/shards/{self.of(wildcards).dataset}/MANIFEST.json"

    def features_of(self, wildcards: Any) -> str | list[str]:
        """Manifest of the study's feature shards; none where no trial reads them."""
        study = self.of(wildcards)
        return f"{self.store}/features/{study.features_key}/MANIFEST.json" if study.needs_data else []

    def benchmark_files(self, wildcards: Any) -> list[str]:
        """Where the rules' benchmark tables are; not inputs, for a lost one reruns nothing."""
        study = self.of(wildcards)
        shared = [f"shards/{study.dataset}", f"features/{study.features_key}"]
        shared += [f"cluster/{study.partition}-{rule}" for rule in ("topology", "calibrate")]
        own = [f"{study.name}/{rule}" for rule in ("trace", "sweep", "verify_checkpoints", "latency")]
        return [f"benchmarks/{name}.tsv" for name in shared + own]

    def job_setting(self, wildcards: Any, field: str) -> Any:
        """A setting of the cluster on which the job runs; None on this machine, or when unset."""
        cluster = self.of(wildcards).settings.cluster
        return (getattr(cluster, field) or None) if cluster.kind == "slurm" else None


def read_studies(config: Mapping[str, Any], *, project: Path) -> Studies:
    """The studies that the workflow's `config` names. Raises a UserError for whatever is wrong with them."""
    unknown = sorted(set(config) - set(KNOWN_KEYS))
    if unknown:
        raise SettingsError(f"unknown workflow setting {unknown[0]!r} (known: {', '.join(KNOWN_KEYS)})")
    overrides = _overrides(config)
    names = list_names(config)
    if not names:
        raise StudyError("no study to build: name one in conf/workflow.yaml, or type --config study=NAME")
    by_name = {name: _compose(name, overrides, project) for name in names}
    paths = {study.settings.paths for study in by_name.values()}
    if len({(path.results, path.store, path.mode) for path in paths}) > 1:
        raise StudyError(f"studies {', '.join(names)} have different paths: build them one at a time")
    path = next(iter(paths))
    return Studies(by_name, _cut_texts(by_name), path.results, path.store or path.results, path.mode)


def check_studies(studies: Studies, *, project: Path) -> None:
    """Refuse what cannot run, before anything is submitted: layouts, models, raw files, partitions.

    A setting that changes nothing gives a warning.
    """
    for study in studies.by_name.values():
        for line in find_idle(study.settings, tuple(candidate.settings for candidate in study.plan.candidates)):
            print(f"warning: study {study.name}: {line}", file=sys.stderr)
    check_all(_list_checks(studies, project))


def _list_checks(studies: Studies, project: Path) -> Iterator[Callable[[], object]]:
    for study in studies.by_name.values():
        yield partial(split_space, study.plan)
        yield partial(check_paths, study.settings.paths, project)
        yield partial(hash_user_models, study.plan, project)
        yield partial(check_programs, study.plan)
        yield partial(check_kernels, study.settings, study.plan)
        if study.needs_data:
            yield partial(check_data, study.settings, project)
    yield partial(check_partitions, {name for study in studies.by_name.values() for name in study.slurm_partitions})


def features_key(study: StudySettings) -> str:
    """Folder of a study's feature shards: the dataset, and a hash of what is computed from it, by which kernels."""
    computed = hash_json([to_plain(study.features), to_plain(study.kernels)])
    return f"{study.data.dataset}-{computed[:8]}"


def list_names(config: Mapping[str, Any]) -> list[str]:
    """Names of the studies in the workflow's configuration, where one may stand alone."""
    listed = config.get("study") or config.get("studies") or ()
    return [str(name) for name in listed] if isinstance(listed, list | tuple) else [str(listed)]


def _overrides(config: Mapping[str, Any]) -> tuple[str, ...]:
    cluster, given = config.get("cluster"), config.get("overrides") or ()
    if not isinstance(given, str | list | tuple):
        raise SettingsError(f"overrides={given!r} is no list of settings: write 'training.steps=100 seed=1'")
    try:
        words = shlex.split(given) if isinstance(given, str) else [str(word) for word in given]
    except ValueError as error:
        raise SettingsError(f"overrides={given!r} cannot be split into words ({error}): close its quotes") from None
    return (*([f"cluster={cluster}"] if cluster else []), *words)


def _compose(name: str, overrides: Sequence[str], project: Path) -> ComposedStudy:
    settings = compose_study(name, overrides, project=project)
    plan = PlanSettings(
        study=name,
        candidates=compose_candidates(name, overrides, project=project),
        values=cut_values(settings, overrides),
        repeats=settings.space.repeats,
        shapes=settings.space.shapes,
    )
    return ComposedStudy(name, settings, plan, features_key(settings))


def _cut_texts(by_name: Mapping[str, ComposedStudy]) -> dict[str, str]:
    texts: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name, study in by_name.items():
        for key, settings in _cut(name, study).items():
            text = yaml.safe_dump(settings, sort_keys=False, width=110)
            if texts.setdefault(key, text) != text:
                raise StudyError(
                    f"studies {owners[key]!r} and {name!r} give {key} different settings: build them one at a time"
                    + (", or give one of them another data.dataset" if key.startswith("data/") else "")
                )
            owners.setdefault(key, name)
    return texts


def _cut(name: str, study: ComposedStudy) -> dict[str, Any]:
    """Each stage's settings, plain, by the name of its file."""
    whole = study.settings
    trials = [candidate.settings for candidate in study.plan.candidates]
    trained = [trial.model for trial in trials if trial.workload.kind == "train"]
    models = tuple({model.name: model for model in trained}.values())
    stages: dict[str, Settings] = {
        f"data/{study.dataset}": whole.data,
        f"features/{study.features_key}": FeaturizeSettings(
            dataset=study.dataset, features=whole.features, kernels=whole.kernels
        ),
        f"{name}/trace": TraceSettings(models=models, task=whole.task, batch_size=whole.training.batch_size),
        f"{name}/plan": study.plan,
        f"{name}/sweep": SweepStageSettings(study=name, cluster=whole.cluster, sweep=whole.sweep),
        f"{name}/latency": LatencyStageSettings(study=name, latency=whole.latency),
        f"{name}/report": ReportStageSettings(study=name, report=whole.report, cluster=whole.cluster),
    }
    # What pays for jobs or bounds them changes no measured fact.
    cluster = whole.cluster.model_dump(mode="json", exclude=_NOT_MEASURED)
    return {f"cluster/{study.partition}": cluster, **{key: to_plain(settings) for key, settings in stages.items()}}
