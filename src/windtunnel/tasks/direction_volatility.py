"""The task `direction_volatility`: two outputs, the logit of "the next return is up" and a scaled log volatility.

The volatility output is in standard deviations of the training stretch's log volatility around its mean.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from windtunnel.settings.task import TaskSettings
from windtunnel.tasks.metrics import score_forecasts
from windtunnel.tasks.split import Stretch
from windtunnel.tasks.targets import make_targets

N_OUTPUTS = 2


@dataclass(frozen=True)
class TargetTable:
    """Targets by row: (T - horizon, 2) float32 of {0, 1} and scaled log volatility, and how to undo the scale."""

    values: NDArray[np.float32]
    volatility_mean: float
    volatility_std: float


def make_table(price: NDArray[np.float64], settings: TaskSettings, train: Stretch) -> TargetTable:
    """Targets of every row, the volatility scaled by the training samples' own."""
    targets = make_targets(price, horizon=settings.horizon)
    fitted = targets.log_volatility[train.first_sample : train.end_sample].astype(np.float64)
    mean, std = float(fitted.mean()), float(fitted.std()) or 1.0
    scaled = ((targets.log_volatility - mean) / std).astype(np.float32)
    return TargetTable(np.stack([targets.up, scaled], axis=1), mean, std)


def sample_losses(output_bo: Tensor, target_bo: Tensor, *, volatility_weight: float) -> Tensor:
    """Loss of each sample, (batch,): cross-entropy of the direction + weight x squared error of the volatility."""
    direction = F.binary_cross_entropy_with_logits(output_bo[:, 0], target_bo[:, 0], reduction="none")
    volatility = torch.square(output_bo[:, 1] - target_bo[:, 1])
    return direction + volatility_weight * volatility


def score_outputs(outputs: NDArray[np.float32], rows: NDArray[np.int64], table: TargetTable) -> dict[str, float]:
    """Metrics of (N, 2) outputs for the samples whose last input rows are `rows`."""
    return score_forecasts(
        outputs.astype(np.float64),
        table.values[rows].astype(np.float64),
        volatility_mean=table.volatility_mean,
        volatility_std=table.volatility_std,
    )
