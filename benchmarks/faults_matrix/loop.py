"""A plain training loop, as one writes it around a package that only saves: order of samples by step, no more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from submitit.helpers import Checkpointable, DelayedSubmission
from torch.nn.functional import mse_loss

from benchmarks.faults_matrix.journal import DONE, RESUMED, SAVED, STEP, Journal, Order
from benchmarks.faults_matrix.model import BATCH, SAMPLES, Net, digest_state, make_data


class Training(Checkpointable):
    """Model, optimizer and the number of steps done; it is itself what submitit pickles when a signal comes."""

    def __init__(self, order: Order) -> None:
        torch.manual_seed(3)
        self.model = Net(dropout=order.dropout)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.step = 0

    def __call__(self, order: Order, attempt_file: str = "", save: Callable[[int], None] | None = None) -> int:
        """Train to the last step; `save` is called when one is due."""
        if attempt_file:  # what was pickled knows the first attempt alone
            order = Order(**{**order.__dict__, "attempt": int(Path(attempt_file).read_text())})
        self.journal, (x, y) = Journal(order), make_data()
        self.journal.add(RESUMED, self.step, digest=self.digest())
        while self.step < order.steps:
            rows = find_rows(self.step)
            self.optimizer.zero_grad()
            mse_loss(self.model(x[rows]), y[rows]).backward()
            self.optimizer.step()
            self.step += 1
            self.journal.add(STEP, self.step, rows=rows.tolist())
            if save is not None and self.step % order.save_every == 0:
                save(self.step)
                self.journal.add(SAVED, self.step, digest=self.digest())
        self.journal.add(DONE, self.step, digest=self.digest())
        return self.step

    def checkpoint(self, *args: Any, **kwargs: Any) -> DelayedSubmission:
        """Called by submitit: this very object goes on, as its documentation has it."""
        self.journal.add(SAVED, self.step, digest=self.digest())
        return super().checkpoint(*args, **kwargs)

    def digest(self) -> str:
        """Of weights and optimizer."""
        return digest_state(self.model, self.optimizer)


def find_rows(step: int) -> torch.Tensor:
    """A new order each epoch, from its number alone."""
    epoch, batch = divmod(step, SAMPLES // BATCH)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
    return order[batch * BATCH : (batch + 1) * BATCH]
