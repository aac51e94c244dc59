"""A small causal transformer encoder with pre-norm blocks and learned positions, read at the last row."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from windtunnel.errors import SettingsError


class CausalAttention(nn.Module):
    """Multi-head self-attention in which a row sees itself and the rows before it."""

    def __init__(self, width: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.head_width = width // heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x_btd: Tensor) -> Tensor:
        query, key, value = (self._split(layer(x_btd)) for layer in (self.query, self.key, self.value))
        dropout = self.dropout if self.training else 0.0
        mixed_bhtd = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        output: Tensor = self.out(mixed_bhtd.transpose(1, 2).flatten(2))
        return output

    def _split(self, x_btd: Tensor) -> Tensor:
        batch, rows, _ = x_btd.shape
        return x_btd.view(batch, rows, -1, self.head_width).transpose(1, 2)


class Block(nn.Module):
    """Attention, then a feed-forward layer four times as wide, each beside an identity path."""

    def __init__(self, width: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads=heads, dropout=dropout)
        self.feed_norm = nn.LayerNorm(width)
        self.feed_in = nn.Linear(width, 4 * width)
        self.feed_out = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_btd: Tensor) -> Tensor:
        x_btd = x_btd + self.dropout(self.attention(self.attention_norm(x_btd)))
        output: Tensor = x_btd + self.dropout(self.feed_out(F.gelu(self.feed_in(self.feed_norm(x_btd)))))
        return output


class CausalTransformer(nn.Module):
    """(batch, window, n_features) to (batch, n_outputs).

    Raises SettingsError for arguments out of range, or a width that the heads do not divide.
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        window: int,
        *,
        width: int = 32,
        heads: int = 4,
        layers: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width < 1 or heads < 1 or layers < 1:
            raise SettingsError(
                f"CausalTransformer with width={width}, heads={heads}, layers={layers}: expected >= 1"
            )
        if width % heads:
            raise SettingsError(f"width {width} is not a multiple of {heads} heads: set model.args.width or heads")
        self.embed = nn.Linear(n_features, width)
        self.positions_td = nn.Parameter(0.02 * torch.randn(window, width))
        self.blocks = nn.Sequential(*(Block(width, heads=heads, dropout=dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, n_outputs)

    def forward(self, x_btc: Tensor) -> Tensor:
        hidden_btd = self.blocks(self.embed(x_btc) + self.positions_td[: x_btc.shape[1]])
        output: Tensor = self.head(self.norm(hidden_btd[:, -1]))
        return output
