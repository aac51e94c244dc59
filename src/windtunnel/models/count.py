"""Floating-point operations of any model, by torch's own counter on the meta device, which takes no memory."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from windtunnel.models.build import build_model
from windtunnel.settings.model import ModelSettings

_SAMPLES = 2
"""Of one, a norm over the batch would refuse to train."""


def count_step(model: ModelSettings, *, n_features: int, n_outputs: int, window: int) -> int | None:
    """Operations of a forward and backward pass of one sample; None for a model that cannot run there.

    Draws from random generators, as the model's making does.
    """
    try:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            module = build_model(model, n_features=n_features, n_outputs=n_outputs, window=window)
            module(torch.empty(_SAMPLES, window, n_features)).sum().backward()
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return None  # it looks at values, which the meta device has none of
    return int(counter.get_total_flops()) // _SAMPLES
