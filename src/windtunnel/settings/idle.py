"""Settings that were given and change nothing: each is worth a warning, none is an error. Pure."""

from collections.abc import Callable, Iterator, Mapping

from windtunnel.settings.base import Settings
from windtunnel.settings.study import StudySettings, TrialSettings

_Rule = Callable[[TrialSettings], bool]
_ON_SLURM_ALONE = ("account", "qos", "constraint", "modules", "setup", "sbatch", "gpu_type", "probe_nodes")
_IDLE_IN_TRIAL: Mapping[str, tuple[_Rule, str]] = {
    "placement.policy": (
        lambda trial: trial.parallelism.nodes == 1,
        "every trial runs on one node: parallelism.nodes says on how many",
    ),
    "training.checkpoint_every": (
        lambda trial: trial.workload.kind == "train" and trial.training.checkpoint_every > trial.training.steps,
        "training.steps is less: the last step alone makes a checkpoint",
    ),
    "training.node_mtbf_hours": (
        lambda trial: trial.workload.kind == "train" and trial.training.checkpoint_every > 0,
        "training.checkpoint_every is fixed: 0 leaves it to the formula that uses this",
    ),
    "training.keep_checkpoints": (
        lambda trial: trial.workload.kind == "train" and trial.training.checkpoint_every > trial.training.steps,
        "training.steps is less than training.checkpoint_every: there is only one checkpoint",
    ),
}


def find_idle(study: StudySettings, trials: tuple[TrialSettings, ...]) -> tuple[str, ...]:
    """A line for each setting of `study` that differs from its default and has no effect on any of `trials`."""
    return (*_find_idle_places(study), *_find_idle_in_trials(trials))


def _find_idle_places(study: StudySettings) -> Iterator[str]:
    cluster, sweep = study.cluster, study.sweep
    if cluster.kind == "local":
        for name in _ON_SLURM_ALONE:
            if _is_set(cluster, name):
                yield _render(study, f"cluster.{name}", "cluster.kind=local submits no jobs")
        if _is_set(sweep, "check_nodes"):
            yield _render(study, "sweep.check_nodes", "cluster.kind=local has no node but this")
        if _is_set(sweep, "poll_s"):
            yield _render(study, "sweep.poll_s", "cluster.kind=local asks no scheduler")
    elif _is_set(sweep, "local_trials"):
        yield _render(study, "sweep.local_trials", "cluster.kind=slurm leaves it to the scheduler")
    if study.data.source != "delimited":
        for name in type(study.data.text).model_fields:
            if _is_set(study.data.text, name):
                yield _render(study, f"data.text.{name}", f"data.source={study.data.source} has a layout of its own")
    if _is_set(cluster, "currency") and not cluster.cost_per_node_hour:
        yield _render(study, "cluster.currency", "cluster.cost_per_node_hour=0 gives no price")


def _find_idle_in_trials(trials: tuple[TrialSettings, ...]) -> Iterator[str]:
    for path, (is_idle, why) in _IDLE_IN_TRIAL.items():
        group, _, name = path.partition(".")
        if trials and all(_is_set(getattr(trial, group), name) and is_idle(trial) for trial in trials):
            yield _render(trials[0], path, why)


def _is_set(settings: Settings, name: str) -> bool:
    return bool(getattr(settings, name) != type(settings).model_fields[name].default)


def _render(settings: Settings, path: str, why: str) -> str:
    value: object = settings
    for part in path.split("."):
        value = getattr(value, part)
    return f"{path}={value} has no effect: {why}"
