"""A trial's samples on this rank: scaled features and targets in memory, and which rows each step takes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from windtunnel.errors import LayoutError, SettingsError
from windtunnel.settings.study import TrialSettings
from windtunnel.shards.permutation import permute
from windtunnel.tasks.direction_volatility import TargetTable
from windtunnel.tasks.find import find_task
from windtunnel.tasks.scaling import apply_scale, fit_scale
from windtunnel.tasks.split import Split, split_rows
from windtunnel.tasks.table import read_table


@dataclass(frozen=True)
class TrialData:
    """One table in time: features scaled by the training rows, targets by row, and the split."""

    features_tc: NDArray[np.float32]
    table: TargetTable
    split: Split
    window: int

    @property
    def n_features(self) -> int:
        """Channels that the model sees."""
        return int(self.features_tc.shape[1])

    def gather(self, rows: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        """Windows (B, window, C) that end at `rows`, and their targets (B, n_outputs)."""
        window_rows = rows[:, None] + np.arange(1 - self.window, 1)
        x_btc = torch.from_numpy(self.features_tc[window_rows])
        target_bo = torch.from_numpy(self.table.values[rows])
        return x_btc.to(device, non_blocking=True), target_bo.to(device, non_blocking=True)


def load_data(manifest_path: Path, settings: TrialSettings) -> TrialData:
    """Read the feature shards, cut them in time, and scale them by what the training rows show."""
    price, features_tc = read_table(manifest_path)
    split = split_rows(len(price), settings.task)
    if split.train.samples < settings.training.batch_size:
        raise SettingsError(
            f"training.batch_size {settings.training.batch_size} is more than the {split.train.samples} samples of "
            "the training stretch: lower it or use more data"
        )
    scale = fit_scale(features_tc[: split.train.end_row])
    table = find_task(settings.task.name).make_table(price, settings.task, split.train)
    return TrialData(apply_scale(features_tc, scale), table, split, settings.task.window)


def take_rows(step: int, *, first_row: int, samples: int, batch_size: int, seed: int) -> NDArray[np.int64]:
    """Last input rows of the global batch of `step`, counted from 0: a pure function, so any step can be resumed.

    Each epoch is a new order; the samples left over at its end, fewer than a batch, are not visited in it.
    """
    epoch, batch = divmod(step, samples // batch_size)
    places = np.arange(batch * batch_size, (batch + 1) * batch_size)
    return permute(places, samples, key=(seed, epoch)) + first_row


def rank_slice(batch_size: int, *, rank: int, world_size: int) -> slice:
    """The contiguous part of a global batch that a rank takes; parts differ by one sample at most."""
    if batch_size < world_size:
        raise LayoutError(
            f"training.batch_size {batch_size} gives {world_size} ranks less than a sample each: "
            f"raise it to {world_size} or lower parallelism.data"
        )
    return slice(batch_size * rank // world_size, batch_size * (rank + 1) // world_size)
