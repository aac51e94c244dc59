"""`python -m benchmarks.faults_matrix.dcp ORDER`: a plain loop that saves by torch.distributed.checkpoint alone.

As its tutorial has it: one stateful object with model and optimizer. A folder a step, of which the newest that has
its metadata is loaded; or the tutorial's one folder, saved over.
"""

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful

from benchmarks.faults_matrix.journal import Order, read_order
from benchmarks.faults_matrix.loop import Training


class AppState(Stateful):
    """What DCP saves and fills."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._training.model, self._training.optimizer)
        return {"model": model, "optimizer": optimizer, "step": torch.tensor(self._training.step)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        training = self._training
        set_state_dict(
            training.model,
            training.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optimizer"],
        )
        training.step = int(state_dict["step"])


def main() -> None:
    torch.set_num_threads(1)
    order = read_order()
    if order.ranks > 1:
        dist.init_process_group("gloo")
    training = Training(order)
    app = {"app": AppState(training)}
    found = find_newest(order)
    if found is not None:
        dcp.load(app, checkpoint_id=found)
    training(order, save=lambda step: save(app, order, step))


def save(app: dict[str, AppState], order: Order, step: int) -> None:
    dcp.save(app, checkpoint_id=order.checkpoints / ("newest" if order.same_folder else f"step-{step:08d}"))


def find_newest(order: Order) -> Path | None:
    """The metadata is written last, so a folder that has it was finished once."""
    finished = sorted(path.parent for path in order.checkpoints.glob("*/.metadata"))
    return finished[-1] if finished else None


if __name__ == "__main__":
    main()
