"""A temporal convolutional network: dilated causal convolutions in residual blocks, read at the last row.

After Bai, Kolter and Koltun, "An Empirical Evaluation of Generic Convolutional and Recurrent Networks
for Sequence Modeling", 2018, with pre-activation layer norms in place of weight norm.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from windtunnel.errors import SettingsError
from windtunnel.perfmodel.flops import count_levels


class CausalConv(nn.Module):
    """A convolution over time in which row t sees rows t, t - dilation, ... alone.

    It is one matrix product over the rows that each output sees, side by side. On processors that is faster than
    `nn.Conv1d` for narrow channels, and twice as fast in bf16, which dilated convolutions there have no kernel for.
    """

    def __init__(self, channels: int, *, kernel: int, dilation: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.dilation = dilation
        self.taps = nn.Linear(kernel * channels, channels)

    def forward(self, x_btc: Tensor) -> Tensor:
        rows = x_btc.shape[1]
        padded = F.pad(x_btc, (0, 0, (self.kernel - 1) * self.dilation, 0))
        seen = torch.cat([padded[:, tap * self.dilation :][:, :rows] for tap in range(self.kernel)], dim=2)
        output: Tensor = self.taps(seen)
        return output


class ResidualBlock(nn.Module):
    """Two causal convolutions of one dilation beside an identity path."""

    def __init__(self, channels: int, *, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        # Each row is normalised by itself: a norm over time would show a row its future.
        self.norm = nn.LayerNorm(channels)
        self.first = CausalConv(channels, kernel=kernel, dilation=dilation)
        self.second = CausalConv(channels, kernel=kernel, dilation=dilation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_btc: Tensor) -> Tensor:
        hidden = self.dropout(F.gelu(self.first(self.norm(x_btc))))
        output: Tensor = x_btc + self.dropout(F.gelu(self.second(hidden)))
        return output


class TCN(nn.Module):
    """(batch, window, n_features) to (batch, n_outputs); block i has dilation 2**i.

    With `levels` left at 0 there are just enough blocks for the last row to see the whole window.
    Raises SettingsError for arguments out of range.
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        window: int,
        *,
        channels: int = 32,
        kernel: int = 3,
        levels: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if channels < 1 or kernel < 2 or levels < 0:
            raise SettingsError(
                f"TCN with channels={channels}, kernel={kernel}, levels={levels}: "
                "expected channels >= 1, kernel >= 2, levels >= 0 (0 covers the window)"
            )
        levels = levels or count_levels(window, kernel)
        self.embed = nn.Linear(n_features, channels)
        self.blocks = nn.Sequential(
            *(ResidualBlock(channels, kernel=kernel, dilation=2**level, dropout=dropout) for level in range(levels))
        )
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, n_outputs)

    def forward(self, x_btc: Tensor) -> Tensor:
        hidden_btc = self.blocks(self.embed(x_btc))
        output: Tensor = self.head(self.norm(hidden_btc[:, -1]))
        return output
