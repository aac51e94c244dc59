"""`hydra/launcher=windtunnel`: a multirun's jobs as trials of our own, or, for another task function, as plain jobs.

Hydra loads every plugin at every start, so what is heavy is imported where it is used; modules of this
package whose names begin with an underscore are not loaded by Hydra.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, configure_log, filter_overrides, setup_globals
from hydra.errors import ConfigCompositionException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from hydra_plugins.windtunnel_launcher._composed import ComposedOnce


@dataclass
class LauncherConf:
    """Where another task function's jobs run. Our own trials follow their study's `cluster` and `sweep` instead."""

    _target_: str = "hydra_plugins.windtunnel_launcher.launcher.WindtunnelLauncher"
    kind: str = "local"
    """`local` processes, or `slurm` jobs."""
    jobs_at_once: int = 1
    """Local processes at a time."""
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    cpus: int = 1
    """CPUs a job."""
    gpus: int = 0
    """GPUs a job."""
    memory: str = "2G"
    """Memory a job, in Slurm's syntax."""
    time: str = "60"
    """Time limit of a job, in Slurm's syntax."""
    modules: list[str] | None = None
    """Environment modules loaded in Slurm jobs."""
    poll_s: float = 30.0
    """Seconds between two looks at squeue."""


class WindtunnelLauncher(Launcher):
    """One job's end, however it comes, never costs another's result."""

    def __init__(self, **places: Any) -> None:
        self.places = places
        self.config: DictConfig | None = None
        self.task_function: TaskFunction | None = None
        self.hydra_context: HydraContext | None = None
        self.loader: ComposedOnce | None = None
        self._trials: Any = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what `launch` needs."""
        self.config = config
        self.task_function = task_function
        # Jobs get the plain context; the sweeper, whose own this one is, checks every job by composing it first.
        self.hydra_context = HydraContext(hydra_context.config_loader, hydra_context.callbacks)
        self.loader = ComposedOnce(hydra_context.config_loader)
        hydra_context.config_loader = cast(ConfigLoader, self.loader)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs; their returns are in order, and a failed one's tells its cause."""
        assert self.config is not None
        assert self.hydra_context is not None
        assert self.task_function is not None
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        sweep_dir = Path(str(self.config.hydra.sweep.dir))
        sweep_dir.mkdir(parents=True, exist_ok=True)
        for offset, overrides in enumerate(job_overrides):
            print(f"job {initial_job_idx + offset}: {' '.join(filter_overrides(overrides))}", flush=True)
        configs = [self._compose(list(each), initial_job_idx + i) for i, each in enumerate(job_overrides)]
        # Polars, pydantic and submitit would cost every Hydra application half a second.
        if getattr(self.task_function, "windtunnel_task", False):
            from hydra_plugins.windtunnel_launcher._trials import Trials, check_places

            check_places(self.places)
            self._trials = self._trials or Trials(self.config, sweep_dir=sweep_dir)
            returned: Sequence[JobReturn] = self._trials.run(configs, first=initial_job_idx)
            return returned
        from hydra_plugins.windtunnel_launcher._foreign import run_foreign
        from hydra_plugins.windtunnel_launcher._job import ForeignTask

        task = ForeignTask(self.hydra_context, self.task_function)
        return run_foreign(task, configs, places=self.places, sweep_dir=sweep_dir)

    def _compose(self, overrides: list[str], index: int) -> DictConfig:
        assert self.loader is not None
        assert self.config is not None
        config = self.loader.take(self.config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(index)
            config.hydra.job.num = index
        if config.hydra.launcher != self.config.hydra.launcher:
            raise ConfigCompositionException(
                f"job {index} ({' '.join(filter_overrides(overrides))}) brings its own hydra/launcher or"
                " hydra.launcher.*, but one launcher runs all jobs of a multirun: take it out of that option's file,"
                " or start a multirun for that option alone"
            )
        return config


ConfigStore.instance().store(
    group="hydra/launcher", name="windtunnel", node=LauncherConf, provider="windtunnel_launcher"
)
