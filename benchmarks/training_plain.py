"""The shortest training loop that anybody would write by hand over the same samples: no meters, no checkpoints."""

import time

import numpy as np
import torch

from benchmarks.training_bed import Bed
from windtunnel.models.build import build_model


class PlainLoop:
    """Trains a model of the same class on the same arrays as a bed does."""

    def __init__(self, bed: Bed, *, batch_size: int) -> None:
        run, self._batch_size = bed.run, batch_size
        self._features, self._targets = run.data.features_tc, run.data.table.values
        self._loss, self._weight = run.task.sample_losses, run.settings.task.volatility_weight
        self._offsets = np.arange(1 - run.data.window, 1)
        first = run.data.split.train.first_sample
        self._order = np.random.default_rng(1).permutation(np.arange(first, first + run.data.split.train.samples))
        self._at = 0
        sizes = {"n_features": run.data.n_features, "n_outputs": run.task.n_outputs, "window": run.data.window}
        self._model = build_model(run.settings.model, **sizes)
        rate = run.settings.training.learning_rate
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=rate, fused=True)

    def train(self, steps: int) -> float:
        """Seconds that so many steps took."""
        torch.use_deterministic_algorithms(False)  # ours are, and pay for it
        began = time.perf_counter()
        for _ in range(steps):
            rows = self._take_rows()
            x_btc = torch.from_numpy(self._features[rows[:, None] + self._offsets])
            target_bo = torch.from_numpy(self._targets[rows])
            self._optimizer.zero_grad(set_to_none=True)
            losses = self._loss(self._model(x_btc), target_bo, volatility_weight=self._weight)
            losses.mean().backward()
            self._optimizer.step()
        return time.perf_counter() - began

    def _take_rows(self) -> np.ndarray:
        if self._at + self._batch_size > len(self._order):
            self._at = 0
        rows = self._order[self._at : self._at + self._batch_size]
        self._at += self._batch_size
        return rows
