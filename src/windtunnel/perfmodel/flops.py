"""Floating-point operations that a training step of our own models takes, from their settings alone.

A multiplication with its addition counts as two; what is no matrix product counts as nothing, as in
torch.utils.flop_counter. Attention counts every pair of rows, though a causal one needs half of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.settings.model import ModelSettings


@dataclass(frozen=True)
class FlopCount:
    """Of one sample."""

    forward: int
    backward: int
    """Gradients of weights and of inputs; the model's own input needs none."""
    fused_again: int
    """What a fused attention kernel computes a second time in its backward pass: the scores."""

    @property
    def model(self) -> int:
        """What the mathematics of a step needs."""
        return self.forward + self.backward


def count_flops(model: ModelSettings, *, n_features: int, n_outputs: int, window: int) -> FlopCount | None:
    """The count of a model of ours; None for any other class."""
    count = _COUNTS.get(model.target)
    if count is None:
        return None
    return count(n_features=n_features, n_outputs=n_outputs, window=window, **model.args)


def count_levels(window: int, kernel: int) -> int:
    """Fewest blocks whose last row reaches `window` rows back: 1 + 2 (kernel - 1) (2**levels - 1) of them."""
    levels = 1
    while 1 + 2 * (kernel - 1) * (2**levels - 1) < window:
        levels += 1
    return levels


def _count_tcn(
    *, n_features: int, n_outputs: int, window: int, channels: int = 32, kernel: int = 3, levels: int = 0, **_: Any
) -> FlopCount:
    blocks = levels or count_levels(window, kernel)
    embed = _product(window, n_features, channels)
    inner = blocks * 2 * _product(window, kernel * channels, channels) + _product(1, channels, n_outputs)
    return FlopCount(embed + inner, embed + 2 * inner, 0)


def _count_transformer(
    *, n_features: int, n_outputs: int, window: int, width: int = 32, layers: int = 2, **_: Any
) -> FlopCount:
    embed = _product(window, n_features, width)
    scores = _product(window, width, window)
    block = 4 * _product(window, width, width) + 2 * scores + 2 * _product(window, width, 4 * width)
    inner = layers * block + _product(1, width, n_outputs)
    return FlopCount(embed + inner, embed + 2 * inner, layers * scores)


def _product(rows: int, inner: int, columns: int) -> int:
    return 2 * rows * inner * columns


_COUNTS: dict[str, Callable[..., FlopCount]] = {
    "windtunnel.models.tcn.TCN": _count_tcn,
    "windtunnel.models.transformer.CausalTransformer": _count_transformer,
}
