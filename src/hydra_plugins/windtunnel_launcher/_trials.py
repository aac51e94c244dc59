"""Composed jobs of our own task as trials of one sweep: the same plan, launch and report as everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from hydra_plugins.windtunnel_launcher.launcher import LauncherConf
from windtunnel.cli.batches import Batches, JobEnd, render_train
from windtunnel.cli.compose import to_plain_dict
from windtunnel.cli.jobs import Job, read_choices, read_job
from windtunnel.cli.objective import read_result
from windtunnel.errors import SettingsError, WindtunnelError

_GRID = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
_INSTEAD = {
    "kind": "cluster",
    "jobs_at_once": "sweep.local_trials",
    "partition": "cluster.partition",
    "account": "cluster.account",
    "qos": "cluster.qos",
    "constraint": "cluster.constraint",
    "cpus": "cluster.cpus_per_rank",
    "gpus": "cluster.gpus_per_rank",
    "memory": "cluster.memory",
    "time": "cluster.time",
    "modules": "cluster.modules",
    "poll_s": "sweep.poll_s",
}
"""The launcher's own settings, and what says the same of trials."""


class Trials:
    """Mutable: the trials of one multirun, over all batches of its sweeper."""

    def __init__(self, config: DictConfig, *, sweep_dir: Path) -> None:
        task = [str(override) for override in config.hydra.overrides.task]
        typed = [*task, *(str(override) for override in config.hydra.overrides.hydra if _is_typed(str(override)))]
        # A grid is what someone typed: an illegal job in it is a mistake. A sampler proposes, and learns.
        self._sampled = str(config.hydra.sweeper.get("_target_")) != _GRID
        self._batches = Batches(
            sweep_dir,
            command=render_train(typed, "-m"),
            sampled=self._sampled,
            fixed=read_choices(task).items(),
        )
        self._sweep_dir = sweep_dir

    def run(self, configs: Sequence[DictConfig], *, first: int) -> list[JobReturn]:
        """Run a batch as one sweep; `first` is the number of its first job.

        A job's value is what `sweep.objective` names of its trial; a sampler needs it, a grid does without. A user's
        mistake raises before anything is submitted.
        """
        jobs = [_read_job(config) for config in configs]
        ends = self._batches.run(jobs, number=first)
        return [
            _make_return(config, job, end, self._sweep_dir, sampled=self._sampled)
            for config, job, end in zip(configs, jobs, ends, strict=True)
        ]


def check_places(places: Mapping[str, Any]) -> None:
    """Refuse settings of the launcher that would have no effect on trials."""
    default = asdict(LauncherConf())
    idle = [name for name, value in places.items() if name in _INSTEAD and value != default[name]]
    if idle:
        words = "; ".join(f"hydra.launcher.{name}={places[name]}: set {_INSTEAD[name]}" for name in idle)
        raise SettingsError(f"trials run where their study's cluster.* and sweep.* say, and nothing else: {words}")


def _is_typed(override: str) -> bool:
    return not override.startswith(("hydra/launcher=", "hydra.mode="))


def _read_job(config: DictConfig) -> Job:
    overrides = [str(override) for override in config.hydra.overrides.task]
    return read_job(to_plain_dict(config), str(config.hydra.runtime.choices["study"]), overrides)


def _make_return(config: DictConfig, job: Job, end: JobEnd, sweep_dir: Path, *, sampled: bool) -> JobReturn:
    task_config = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    hydra_config = OmegaConf.masked_copy(config, ["hydra"])
    with read_write(hydra_config), open_dict(hydra_config):
        hydra_config.hydra.runtime.output_dir = str(sweep_dir.resolve())
    returned = JobReturn(
        overrides=[str(override) for override in config.hydra.overrides.task],
        cfg=task_config,
        hydra_cfg=hydra_config,
        working_dir=str(sweep_dir.resolve()),
        task_name=str(config.hydra.job.name),
    )
    try:
        returned.return_value = read_result(end, job.settings.sweep.objective, sampled=sampled)
        returned.status = JobStatus.COMPLETED
    except SettingsError:
        raise  # an objective that nothing measures is no trial's failure
    except WindtunnelError as error:
        returned.return_value = error
        returned.status = JobStatus.FAILED
    return returned
