"""Loss and metrics over a stretch of time: ranks share the work, and their number does not change the result."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from windtunnel.records.trial import Evaluation
from windtunnel.settings.study import TrialSettings
from windtunnel.tasks.find import find_task
from windtunnel.tasks.split import Stretch
from windtunnel.training.data import TrialData
from windtunnel.training.mesh import Mesh
from windtunnel.training.precision import autocast

PARTS = 20
"""Parts of a stretch whose losses are kept apart. Neighbouring samples share rows; parts this long hardly do."""
_BLOCK = 256
"""Samples of one forward pass. It is fixed, because kernels may sum in another order at another size."""


@dataclass(frozen=True)
class Forecasts:
    """Outputs (N, n_outputs) and losses (N,) of some samples of a stretch."""

    outputs: NDArray[np.float32]
    losses: NDArray[np.float32]


def evaluate(
    model: nn.Module, data: TrialData, stretch: Stretch, *, settings: TrialSettings, mesh: Mesh
) -> Evaluation:
    """The evaluation of `stretch`, on every rank; `model` is the plain module, in the trial's precision."""
    rows = np.arange(stretch.first_sample, stretch.end_sample)
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    training = model.training
    model.eval()
    # All ranks take as many turns, since those that divide a model gather it together: what is over counts nothing.
    size = mesh.data_size
    turns = range(mesh.data_rank, mesh.data_rank + len(blocks) + -len(blocks) % size, size)
    mine = [forecast(model, data, blocks[min(turn, len(blocks) - 1)], settings=settings, mesh=mesh) for turn in turns]
    model.train(training)
    shares = mesh.comm.allgather(mine)[:: mesh.tensor]
    whole = [shares[number % size][number // size] for number in range(len(blocks))]
    outputs = np.concatenate([part.outputs for part in whole])
    losses = np.concatenate([part.losses for part in whole]).astype(np.float64)
    scores = find_task(settings.task.name).score_outputs(outputs, rows, data.table)
    return Evaluation(stretch.name, stretch.samples, float(losses.mean()), scores, average_parts(losses))


def average_parts(losses: NDArray[np.float64]) -> tuple[float, ...]:
    """Mean loss of consecutive parts of equal size, oldest first; a part has at least one sample."""
    return tuple(float(part.mean()) for part in np.array_split(losses, min(PARTS, len(losses))))


@torch.no_grad()
def forecast(
    model: nn.Module, data: TrialData, rows: NDArray[np.int64], *, settings: TrialSettings, mesh: Mesh
) -> Forecasts:
    """Outputs and losses of the samples that end at `rows`."""
    task = find_task(settings.task.name)
    x_btc, target_bo = data.gather(rows, mesh.device)
    with autocast(settings.training, mesh.device):
        output_bo = model(x_btc)
    output_bo = output_bo.float()
    losses = task.sample_losses(output_bo, target_bo, volatility_weight=settings.task.volatility_weight)
    return Forecasts(output_bo.cpu().numpy(), losses.cpu().numpy())
