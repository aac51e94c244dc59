"""`hydra/launcher=windtunnel`: a multirun's jobs as trials of our own, or, for another task function, as plain jobs.

Hydra loads every plugin at every start, so what is heavy is imported where it is used; modules of this
package whose names begin with an underscore are not loaded by Hydra.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, configure_log, filter_overrides, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


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

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what `launch` needs."""
        self.config = config
        self.task_function = task_function
        self.hydra_context = hydra_context

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
            from hydra_plugins.windtunnel_launcher._trials import run_as_trials

            return run_as_trials(configs, sweep_dir=sweep_dir)
        from hydra_plugins.windtunnel_launcher._foreign import ForeignTask, run_foreign

        task = ForeignTask(self.hydra_context, self.task_function)
        return run_foreign(task, configs, places=self.places, sweep_dir=sweep_dir)

    def _compose(self, overrides: list[str], index: int) -> DictConfig:
        assert self.hydra_context is not None
        assert self.config is not None
        config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(index)
            config.hydra.job.num = index
        return config


ConfigStore.instance().store(
    group="hydra/launcher", name="windtunnel", node=LauncherConf, provider="windtunnel_launcher"
)
