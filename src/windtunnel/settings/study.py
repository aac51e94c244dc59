"""The settings of a whole study, and those of each stage that are cut from them."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from windtunnel.settings.base import Settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.data import DataSettings
from windtunnel.settings.features import FeatureSettings
from windtunnel.settings.kernels import KernelSettings
from windtunnel.settings.latency import LatencySettings
from windtunnel.settings.model import ModelSettings
from windtunnel.settings.parallelism import ParallelismSettings
from windtunnel.settings.placement import PlacementSettings
from windtunnel.settings.report import ReportSettings
from windtunnel.settings.shapes import ShapeRule, find_mistakes
from windtunnel.settings.sweep import SweepSettings
from windtunnel.settings.task import TaskSettings
from windtunnel.settings.training import TrainingSettings
from windtunnel.settings.workload import WorkloadSettings

MOST_REPEATS = 100_000
"""Trials that one study can have."""


class PathSettings(Settings):
    results: str = "results"
    """Folder of a study's own artifacts."""
    store: str = ""
    """Folder of what studies share: shards, features, cluster facts, trials. `results` when empty."""
    mode: Literal["own", "group", "public"] = "own"
    """Who may use the store: `own` gives the group what your umask does and others nothing, `group` lets the folder's
    group read and write, `public` lets others read too. A store that is shared already keeps its own."""


class SpaceSettings(Settings):
    """What a study varies: every combination of `groups` and `values` is a trial."""

    groups: dict[str, tuple[str, ...]] = {}
    """Configuration groups and the options to try: `model: [tcn, transformer]`."""
    values: dict[str, tuple[Any, ...]] = {}
    """Dotted settings and the values to try: `training.precision: [fp32, bf16]`."""
    repeats: int = Field(default=1, ge=1, le=MOST_REPEATS)
    """Trials of each combination."""
    shapes: tuple[ShapeRule, ...] = ()
    """What some trials ask of the cluster, a later rule over an earlier one: `{when: {model: transformer}, time:
    2:00:00, memory: 8G}`. A rule may set `partition`, `account`, `qos`, `constraint`, `time`, `memory`,
    `cpus_per_rank`, `gpus_per_rank`, `gpu_type` and `sbatch`; `when` names choices, one or a list each."""

    @model_validator(mode="after")
    def _name_each_once(self) -> Self:
        for key, options in {**self.groups, **self.values}.items():
            twice = _find_twice(options)
            if twice is not None:
                raise ValueError(f"space: {key} names {twice[0]!r} twice, which would be one trial: name it once")
        return self

    @model_validator(mode="after")
    def _know_choices(self) -> Self:
        mistakes = find_mistakes(self.shapes, {**self.groups, **self.values})
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return self


def _find_twice(options: Sequence[Any]) -> tuple[Any] | None:
    """The first option that is named again. A list or mapping is told by its text, since it has no hash."""
    seen: set[Any] = set()
    for option in options:
        key = repr(option) if isinstance(option, list | dict | tuple) else option
        if key in seen:
            return (option,)
        seen.add(key)
    return None


class StudySettings(Settings):
    """Everything that a study is; a stage's settings are cut from it."""

    study: str = Field(pattern=r"^[a-z0-9_]{1,100}$")
    """Name of the study."""
    seed: int = Field(default=0, ge=0)
    """Seed of every random generator."""
    data: DataSettings
    """Raw files."""
    features: FeatureSettings
    """What is computed from them."""
    kernels: KernelSettings = KernelSettings()
    """What computes it."""
    workload: WorkloadSettings = WorkloadSettings()
    """What a trial runs: our trainer, or any program."""
    model: ModelSettings
    """What is trained."""
    task: TaskSettings
    """What it forecasts."""
    parallelism: ParallelismSettings
    """How ranks divide the work."""
    training: TrainingSettings
    """The training loop."""
    placement: PlacementSettings
    """Ranks onto nodes."""
    cluster: ClusterSettings
    """Where it runs."""
    space: SpaceSettings
    """What is varied."""
    sweep: SweepSettings
    """How trials are run."""
    latency: LatencySettings
    """The inference measurement."""
    report: ReportSettings
    """The report."""
    paths: PathSettings
    """Where results go."""


class TrialSettings(Settings):
    """All that may change a trial's result, loss and speed alike; its hash is part of the trial's identity."""

    seed: int
    repeat: int = Field(default=0, ge=0)
    dataset: str
    features: FeatureSettings
    kernels: KernelSettings = KernelSettings()
    workload: WorkloadSettings = WorkloadSettings()
    model: ModelSettings
    task: TaskSettings
    parallelism: ParallelismSettings
    training: TrainingSettings
    placement: PlacementSettings
    cluster: ClusterSettings


class FeaturizeSettings(Settings):
    """Settings file of featurize."""

    dataset: str
    features: FeatureSettings
    kernels: KernelSettings = KernelSettings()


class TraceSettings(Settings):
    """Settings file of trace: every model of the study."""

    models: tuple[ModelSettings, ...]
    task: TaskSettings
    batch_size: int


class CandidateSettings(Settings):
    """One combination of the study's groups, resolved."""

    choices: dict[str, str]
    """The options chosen: `{"model": "tcn", "parallelism": "ddp"}`."""
    settings: TrialSettings
    """The trial's settings before `values` are merged in."""


class PlanSettings(Settings):
    """Settings file of plan."""

    study: str
    candidates: tuple[CandidateSettings, ...]
    values: dict[str, tuple[Any, ...]]
    repeats: int
    shapes: tuple[ShapeRule, ...] = ()


class SweepStageSettings(Settings):
    """Settings file of sweep."""

    study: str
    cluster: ClusterSettings
    sweep: SweepSettings


class LatencyStageSettings(Settings):
    """Settings file of latency."""

    study: str
    latency: LatencySettings


class ReportStageSettings(Settings):
    """Settings file of report."""

    study: str
    report: ReportSettings
    cluster: ClusterSettings
