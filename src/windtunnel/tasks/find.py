"""The tasks by name, each as the functions that training and evaluation call."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from windtunnel.errors import SettingsError
from windtunnel.tasks import direction_volatility


@dataclass(frozen=True)
class Task:
    """What a model is asked: how many outputs, what they are held against, and how they are scored."""

    n_outputs: int
    make_table: Callable[..., direction_volatility.TargetTable]
    sample_losses: Callable[..., Tensor]
    score_outputs: Callable[..., dict[str, float]]


TASKS: dict[str, Task] = {
    "direction_volatility": Task(
        n_outputs=direction_volatility.N_OUTPUTS,
        make_table=direction_volatility.make_table,
        sample_losses=direction_volatility.sample_losses,
        score_outputs=direction_volatility.score_outputs,
    )
}


def find_task(name: str) -> Task:
    """The task called `name`; raises SettingsError naming those that there are."""
    if name not in TASKS:
        raise SettingsError(f"task.name {name!r} is unknown: choose one of {', '.join(TASKS)}")
    return TASKS[name]
