"""A small model whose steps may be made to last, as an accelerator's do, while the processor has nothing to do."""

import os
import time

from torch import Tensor, nn

PACE = "WINDTUNNEL_SOAK_PACE_S"
"""Environment variable: seconds that a training step waits, 0 without it. It changes no result."""


class Paced(nn.Module):
    """(batch, window, n_features) to (batch, n_outputs): a line through all rows, with dropout."""

    def __init__(self, *, n_features: int, n_outputs: int, window: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)
        self.line = nn.Linear(window * n_features, n_outputs)
        self._pace_s = float(os.environ.get(PACE, "0"))

    def forward(self, x_btf: Tensor) -> Tensor:
        if self.training:
            time.sleep(self._pace_s)
        output: Tensor = self.line(self.dropout(x_btf.flatten(1)))
        return output
