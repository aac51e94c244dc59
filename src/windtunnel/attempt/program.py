"""What one rank of an attempt runs: our trainer, or the user's program with its templates filled. Pure."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.errors import SettingsError
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.template import fill, list_keys
from windtunnel.settings.workload import BUILT_IN, WorkloadSettings, look_up

_FIRST_PORT, _PORTS = 20000, 10000  # below those that Linux gives to outgoing connections


@dataclass(frozen=True)
class Program:
    """A command, what it adds to the environment, and where it runs."""

    argv: tuple[str, ...]
    env: dict[str, str]
    directory: Path | None = None
    """Working folder; None for the supervisor's own."""
    folders: tuple[Path, ...] = ()
    """What it reads and writes besides: a container must show them."""


@dataclass(frozen=True)
class AttemptFiles:
    """Where an attempt and its program meet."""

    folder: TrialFolder
    attempt: int
    generation: int = 0
    """Of the lease that the supervisor holds; 0 without one."""

    @property
    def path(self) -> Path:
        return self.folder.attempt(self.attempt)

    @property
    def hosts(self) -> Path:
        """Host of each rank, one a line."""
        return self.path / "hosts"

    @property
    def settings(self) -> Path:
        """The trial's settings, for a program to read."""
        return self.path / "settings.json"

    @property
    def metrics(self) -> Path:
        """The lines that a program writes."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """A program's own checkpoints, kept over its attempts."""
        return self.folder.path / "checkpoints"


def make_trainer(config: TrialConfig, files: AttemptFiles, *, rank_command: Sequence[str], path: str) -> Program:
    """One rank of our own trainer; `path` is the PYTHONPATH so far."""
    which = ("--attempt", str(files.attempt), "--generation", str(files.generation))
    argv = (*rank_command, "--trial-dir", str(files.folder.path), *which)
    store = Path(config.features_manifest).parent
    folders = [files.folder.path, store, *(Path(part) for part in _roots(config, path))]
    return Program(argv, _common_env(config, path), folders=tuple(folders))


def make_command(config: TrialConfig, files: AttemptFiles, *, first_host: str, path: str) -> Program:
    """The user's program; raises SettingsError for a key of a template that nothing explains."""
    settings = config.trial.settings
    workload = WorkloadSettings.model_validate(settings["workload"])
    values = _read_values(config, files, workload)
    env = {**_common_env(config, path), **_command_env(config, files, first_host=first_host), **_mpi_env(settings)}
    env |= {name: fill(text, values) for name, text in workload.environment.items()}
    root = Path(config.import_root or ".")
    folders = [files.folder.path, root, *([Path(config.features_manifest).parent] if workload.data else [])]
    argv = tuple(fill(word, values) for word in workload.argv)
    return Program(argv, env, root / workload.directory, tuple(folders))


def fill_launcher(config: TrialConfig, files: AttemptFiles) -> tuple[str, ...]:
    """`workload.mpiexec` with its keys filled."""
    workload = WorkloadSettings.model_validate(config.trial.settings["workload"])
    values = _read_values(config, files, workload)
    return tuple(fill(word, values) for word in workload.mpiexec)


def describe_settings(config: TrialConfig, files: AttemptFiles) -> dict[str, Any]:
    """The settings file: what a program may want to know of its trial."""
    trial = config.trial
    workload = trial.settings["workload"]
    hidden = {"workload", "model", "task", *(() if workload["data"] else ("features", "dataset"))}
    return {
        "trial_id": trial.id,
        "name": trial.name,
        "attempt": files.attempt,
        "choices": trial.choices,
        "parameters": workload["parameters"],
        **{key: value for key, value in trial.settings.items() if key not in hidden},
    }


def choose_port(job: str, attempt: int) -> int:
    """A port at which ranks may meet: no two attempts of a node are likely to choose the same."""
    return _FIRST_PORT + zlib.crc32(f"{job}:{attempt}".encode()) % _PORTS


def _read_values(config: TrialConfig, files: AttemptFiles, workload: WorkloadSettings) -> dict[str, Any]:
    values: dict[str, Any] = dict(zip(BUILT_IN, _built_in(config, files), strict=True))
    for text in workload.templates:
        for key in list_keys(text):
            if key not in values:
                try:
                    values[key] = look_up(config.trial.settings, key)
                except KeyError:
                    raise SettingsError(f"workload: {{{key}}} is no parameter and no setting: correct it") from None
    return values


def _built_in(config: TrialConfig, files: AttemptFiles) -> tuple[Any, ...]:
    shape, settings = config.trial.shape, config.trial.settings
    paths = (files.checkpoints, config.features_manifest, files.hosts, files.metrics)
    checkpoints, features, hosts, metrics = (str(path) for path in paths)
    return (
        files.attempt,
        checkpoints,
        features,
        hosts,
        metrics,
        shape.nodes,
        config.import_root,
        shape.ranks,
        shape.ranks_per_node,
        settings["repeat"],
        settings["seed"],
        str(files.settings),
        str(files.folder.path),
    )


def _command_env(config: TrialConfig, files: AttemptFiles, *, first_host: str) -> dict[str, str]:
    shape, trial = config.trial.shape, config.trial
    data = {"WINDTUNNEL_FEATURES": config.features_manifest} if trial.settings["workload"]["data"] else {}
    return {
        "WINDTUNNEL_TRIAL_ID": trial.id,
        "WINDTUNNEL_TRIAL_DIR": str(files.folder.path),
        "WINDTUNNEL_ATTEMPT": str(files.attempt),
        "WINDTUNNEL_SETTINGS": str(files.settings),
        "WINDTUNNEL_METRICS": str(files.metrics),
        "WINDTUNNEL_CHECKPOINTS": str(files.checkpoints),
        "WINDTUNNEL_HOSTS": str(files.hosts),
        **data,
        "WORLD_SIZE": str(shape.ranks),
        "LOCAL_WORLD_SIZE": str(shape.ranks_per_node),
        "MASTER_ADDR": first_host,
        "MASTER_PORT": str(choose_port(trial.id, files.attempt)),
    }


def _mpi_env(settings: Mapping[str, Any]) -> dict[str, str]:
    interface = settings["cluster"]["network_interface"]
    if not interface:
        return {}
    # Open MPI otherwise tries every interface that it finds, and waits for those that lead nowhere.
    return {"OMPI_MCA_btl_tcp_if_include": interface, "OMPI_MCA_oob_tcp_if_include": interface}


def _common_env(config: TrialConfig, path: str) -> dict[str, str]:
    settings = config.trial.settings
    interface = settings["cluster"]["network_interface"]
    roots = _roots(config, path)
    env = {"OMP_NUM_THREADS": str(settings["training"]["threads_per_rank"]), "PYTHONUNBUFFERED": "1"}
    if roots:
        env["PYTHONPATH"] = ":".join(roots)
    if interface:
        env |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return env


def _roots(config: TrialConfig, path: str) -> list[str]:
    return [part for part in (config.import_root, *path.split(":")) if part]
