"""The one door to Hydra: a study's name and overrides in, plain resolved settings out.

Hydra composes and resolves, then ends: nothing below sees a DictConfig.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

import yaml
from hydra import compose
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import setup_globals
from hydra.errors import HydraException
from hydra.types import RunMode
from hydra.version import setbase
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from windtunnel.cli.explain_hydra import NO_OPTION, explain_hydra
from windtunnel.cli.grid import check_grid
from windtunnel.cli.project import conf_dirs, read_site, slurm_times
from windtunnel.errors import SettingsError, StudyError
from windtunnel.planner.space import check_size
from windtunnel.settings.base import parse_settings
from windtunnel.settings.study import CandidateSettings, StudySettings, TrialSettings

RESERVED = frozenset({"config", "shards", "features", "cluster", "trials", "data"})
"""Names that are folders of `results/`, and so cannot be studies."""
VARIED_GROUPS = ("model", "parallelism", "placement", "task", "training", "workload")
"""Groups that a study may vary: the others are shared by all its trials."""
VARIED_VALUES = frozenset(
    {"cluster.cpus_per_rank", "cluster.gpus_per_rank", "cluster.memory", "kernels.backend", "seed"}
)
"""Settings of other groups that a study may vary.

Whatever is not part of a trial's id is left out: it would make one trial of many."""


def compose_study(study: str, overrides: Sequence[str] = (), *, project: Path) -> StudySettings:
    """The study's settings, checked. Raises StudyError for an unknown study, SettingsError for the rest."""
    return read_study(_compose(study, tuple(overrides), project.resolve()), study)


def compose_candidates(study: str, overrides: Sequence[str] = (), *, project: Path) -> tuple[CandidateSettings, ...]:
    """One combination of the study's groups after another, each resolved; an override of a group fixes it.

    Raises StudyError when there is none.
    """
    base = compose_study(study, overrides, project=project)
    _check_space(study, base)
    given = dict(override.split("=", 1) for override in overrides if "=" in override)
    groups = {group: (given[group],) if group in given else options for group, options in base.space.groups.items()}
    varied = {
        **{f"space.groups.{group}": len(options) for group, options in groups.items()},
        **{f"space.values.{key}": len(values) for key, values in cut_values(base, overrides).items()},
    }
    check_size({**varied, "space.repeats": base.space.repeats}, where=f"study {study!r}")
    candidates = []
    for options in product(*groups.values()):
        choices = dict(zip(groups, options, strict=True))
        chosen = [f"{group}={option}" for group, option in choices.items()]
        settings = compose_study(study, [*overrides, *chosen], project=project) if chosen else base
        candidates.append(CandidateSettings(choices=choices, settings=cut_trial(settings)))
    return tuple(candidates)


def run_app(task: Callable[[Any], Any], overrides: Sequence[str], *, multirun: bool, project: Path) -> Any:
    """Run `task` as a Hydra application does: once, or with `multirun` for every combination through the launcher.

    Returns what Hydra returns: a JobReturn, or for a multirun the list of lists of them.
    """
    register_resolvers(project)
    with _hydras_errors(overrides), _hydra(conf_dirs(project)) as hydra:
        run = hydra.multirun if multirun else hydra.run
        return run(config_name="config", task_function=task, overrides=list(overrides))


def check_multirun(overrides: Sequence[str], *, project: Path) -> str:
    """The option of `hydra/launcher` that a multirun of `overrides` would choose.

    Raises SettingsError where Hydra's own sweeper would list no job, or more than can be planned.
    """
    register_resolvers(project)
    with _hydras_errors(overrides), _hydra(conf_dirs(project)) as hydra:
        config = hydra.compose_config(
            "config", list(overrides), run_mode=RunMode.MULTIRUN, with_log_configuration=False
        )
        choices, sweeper = config.hydra.runtime.choices, config.hydra.sweeper
        if choices["hydra/sweeper"] == "basic":
            words = [*(f"{key}={value}" for key, value in (sweeper.params or {}).items()), *overrides]
            parsed = OverridesParser.create(config_loader=hydra.config_loader).parse_overrides(words)
            check_grid(parsed, max_batch_size=sweeper.max_batch_size)
        return str(choices["hydra/launcher"])


def show_app(overrides: Sequence[str], *, part: str, project: Path) -> None:
    """Print the composed configuration (`job`, `hydra` or `all`) as Hydra's `--cfg` does.

    Values with commas are shown as they were given: no combination is chosen.
    """
    register_resolvers(project)
    with _hydras_errors(overrides), _hydra(conf_dirs(project)) as hydra:
        hydra.show_cfg("config", list(overrides), cfg_type=part, package=None)


@dataclass(frozen=True)
class AppRun:
    """What Hydra knows of the job it is running."""

    study: str
    overrides: tuple[str, ...]
    folder: Path


def read_app_run() -> AppRun:
    """The running job's study, overrides and output folder."""
    hydra = HydraConfig.get()
    return AppRun(hydra.runtime.choices["study"], tuple(hydra.overrides.task), Path(hydra.runtime.output_dir))


def to_plain_dict(config: Any) -> dict[str, Any]:
    """A Hydra job's configuration, resolved, as plain values."""
    # Hydra's own part has values that are never set.
    own = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    return cast("dict[str, Any]", OmegaConf.to_container(own, resolve=True, throw_on_missing=True))


def cut_values(study: StudySettings, overrides: Sequence[str] = ()) -> dict[str, tuple[Any, ...]]:
    """The settings that the study varies, less those that an override fixes."""
    fixed = {override.split("=", 1)[0] for override in overrides}
    return {key: values for key, values in study.space.values.items() if key not in fixed}


def read_study(plain: Mapping[str, Any], study: str) -> StudySettings:
    """A composed configuration as settings; the study's name is its file's."""
    return parse_settings(StudySettings, {**plain, "study": study}, where=f"study {study!r}")


def cut_trial(study: StudySettings, repeat: int = 0) -> TrialSettings:
    """What of a study's settings one trial depends on."""
    return TrialSettings(
        seed=study.seed,
        repeat=repeat,
        dataset=study.data.dataset,
        features=study.features,
        kernels=study.kernels,
        workload=study.workload,
        model=study.model,
        task=study.task,
        parallelism=study.parallelism,
        training=study.training,
        placement=study.placement,
        cluster=study.cluster,
    )


def list_studies(project: Path) -> tuple[str, ...]:
    """Names of all studies that can be composed from `project`."""
    return tuple(sorted({path.stem for folder in conf_dirs(project) for path in (folder / "study").glob("*.yaml")}))


def check_study_name(study: str, project: Path) -> None:
    """Raise StudyError unless `study` is one of the project's studies."""
    if study in RESERVED:
        raise StudyError(f"study {study!r} has the name of a folder of results: call it something else")
    known = list_studies(project)
    if study not in known:
        raise StudyError(f"study {study!r} is not known; known: {', '.join(known)}; or write conf/study/{study}.yaml")


def register_resolvers(project: Path) -> None:
    """Let configuration say `${site:partition,main}`: the site file's value, or the default."""
    site = read_site(project)
    OmegaConf.register_new_resolver("site", lambda key, default: site.get(key, default), replace=True)


@cache
def _compose(study: str, overrides: tuple[str, ...], project: Path) -> dict[str, Any]:
    check_study_name(study, project)
    for override in overrides:
        if override.lstrip("+~").startswith("study="):
            raise StudyError(
                f"{override} would run another study under the name {study!r}: name that one in its place"
            )
    register_resolvers(project)
    with _hydras_errors(overrides, where=f"study {study!r}: "), _hydra(conf_dirs(project)):
        config = compose("config", overrides=[f"study={study}", *overrides])
        return cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True, throw_on_missing=True))


@contextmanager
def _hydras_errors(overrides: Sequence[str], where: str = "") -> Iterator[None]:
    """Each mistake that Hydra finds as a SettingsError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise SettingsError(where + explain_hydra(str(error), overrides)) from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{where}a configuration file is not UTF-8 text ({error.reason})") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{where}a configuration file is not YAML: {error}") from None
    except ValueError as error:
        if not str(error).startswith(NO_OPTION):
            raise
        raise SettingsError(where + explain_hydra(str(error), overrides)) from None


@contextmanager
def _hydra(folders: Sequence[Path]) -> Iterator[Hydra]:
    # Hydra's `initialize` takes one folder, and `hydra.searchpath` cannot name the one that holds config.yaml;
    # a user's folder must come before ours, which holds it. These calls are what `initialize` makes.
    setbase("1.3")
    setup_globals()
    search = create_config_search_path(f"file://{folders[0]}")
    for folder in folders[1:]:
        search.prepend("windtunnel", f"file://{folder}", anchor="schema")  # Hydra wants its schema last
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with slurm_times():
            yield Hydra.create_main_hydra2("windtunnel", search)
    finally:
        GlobalHydra.instance().hydra = outer


def _check_space(study: str, settings: StudySettings) -> None:
    space = settings.space
    for group, options in space.groups.items():
        if group not in VARIED_GROUPS:
            known = ", ".join(VARIED_GROUPS)
            raise StudyError(f"study {study!r}: space.groups.{group} cannot be varied; these can: {known}")
        if not options:
            raise StudyError(f"study {study!r} has no trials: space.groups.{group} is empty: name an option")
    for key, values in space.values.items():
        _check_key(study, key)
        if not values:
            raise StudyError(f"study {study!r} has no trials: space.values.{key} is empty: name a value")


def _check_key(study: str, key: str) -> None:
    """Refuse a setting that all trials of a study must share."""
    if key == "cluster.time":
        raise StudyError(
            f"study {study!r}: space.values {key!r} cannot be varied: a time limit changes no result and is not part"
            " of a trial's id, so all its values are one trial; set cluster.time itself"
        )
    if key in ("workload.kind", "workload.data"):
        raise StudyError(
            f"study {study!r}: space.values {key!r} cannot be varied: name options in space.groups.workload"
        )
    top = key.split(".")[0]
    if (top in VARIED_GROUPS and top != key) or key in VARIED_VALUES:
        return
    known = ", ".join([*(f"{group}.*" for group in VARIED_GROUPS), *sorted(VARIED_VALUES)])
    raise StudyError(f"study {study!r}: space.values {key!r} cannot be varied; these can: {known}")
