"""Inside a job: one Hydra job of a task function that is not ours. Light, since it is imported once a job."""

from dataclasses import dataclass
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass(frozen=True)
class ForeignTask:
    """A task function and Hydra's own context of it."""

    context: HydraContext
    function: TaskFunction


def run_foreign_job(task: ForeignTask, config: DictConfig, state: Any) -> JobReturn:
    """Hydra's own way of running one job, with the launching process's resolvers and singletons."""
    Singleton.set_state(state)
    setup_globals()
    return run_job(
        hydra_context=task.context,
        task_function=task.function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
