"""Rolling moments in plain PyTorch: two passes over every window in float64, slow and plain to read.

It states what the compiled kernel must return; `windtunnel.kernels.rolling` has the rules in words.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def rolling_moments_reference(x_tc: Tensor, windows: Sequence[int], *, min_periods: int) -> Tensor:
    """Mean, standard deviation and z-score (T, C, W, 3) of `x_tc` (T, C), in its dtype."""
    if x_tc.numel() == 0:
        return x_tc.new_empty((*x_tc.shape, len(windows), 3))
    return torch.stack([_window_moments(x_tc, window, min_periods) for window in windows], dim=2)


def _window_moments(x_tc: Tensor, window: int, min_periods: int) -> Tensor:
    """Moments (T, C, 3) of one window."""
    x_tc64 = x_tc.double()
    before = x_tc64.new_full((window - 1, x_tc.shape[1]), torch.nan)
    x_tcw = torch.cat((before, x_tc64)).unfold(0, window, 1)
    valid_tcw = x_tcw.isfinite()
    n_tc = valid_tcw.sum(-1)
    low_tc = x_tcw.where(valid_tcw, torch.inf).amin(-1)
    constant_tc = low_tc == x_tcw.where(valid_tcw, -torch.inf).amax(-1)
    # Shifted by a value of the window, so that a mean is not rounded at the scale of the values.
    shifted_tcw = (x_tcw - low_tc.unsqueeze(-1)).where(valid_tcw, 0.0)
    offset_tc = shifted_tcw.sum(-1) / n_tc
    deviation_tcw = (shifted_tcw - offset_tc.unsqueeze(-1)).where(valid_tcw, 0.0)
    std_tc = (deviation_tcw.square().sum(-1) / (n_tc - 1)).sqrt()
    score_tc = (x_tc64 - low_tc - offset_tc) / std_tc
    mean_tc = low_tc.where(constant_tc, low_tc + offset_tc)
    std_tc = std_tc.where(~constant_tc, 0.0).where(n_tc > 1, torch.nan)
    score_tc = score_tc.where(std_tc != 0, 0.0).where((n_tc > 1) & x_tc64.isfinite(), torch.nan)
    held_tc = (n_tc >= min_periods) & ~x_tcw.isinf().any(-1)
    moments_tc3 = torch.stack((mean_tc, std_tc, score_tc), dim=-1)
    return moments_tc3.where(held_tc.unsqueeze(-1), torch.nan).to(x_tc.dtype)
