"""Rolling moments in plain PyTorch: two passes over every window in float64, slow and plain to read.

Used where there is no compiled library, when asked for, and as what the compiled code must return.
"""

import torch
from torch import Tensor

from windtunnel.kernels.rules import check_out, check_rolling, find_time_dim

_CHUNK_VALUES = 1 << 22  # of unfolded windows at a time: 32 MiB


def roll_reference(moment: str, x: Tensor, window: int, min_periods: int) -> Tensor:
    """Moment `mean`, `sum`, `var`, `std` or `zscore` of the window that ends at each row; shape and dtype of `x`."""
    check_rolling(f"rolling_{moment}", x, window, min_periods)
    time = find_time_dim(x)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    x_t = x.movedim(time, 0)
    out_t = out.movedim(time, 0)
    step = max(1, _CHUNK_VALUES // max(1, window * (x_t[0].numel() if len(x_t) else 1)))
    for begin in range(0, len(x_t), step):
        end = min(begin + step, len(x_t))
        out_t[begin:end] = _roll_rows(moment, x_t, window, min_periods, rows=(begin, end))
    return out


def _roll_rows(moment: str, x_t: Tensor, window: int, min_periods: int, *, rows: tuple[int, int]) -> Tensor:
    """The moment at rows begin .. end - 1 of `x_t`, whose first dimension is time; float64."""
    begin, end = rows
    window = min(window, end)
    absent = max(0, window - 1 - begin)
    here = x_t[begin - window + 1 + absent : end].double()
    windows = torch.cat((here.new_full((absent, *here.shape[1:]), torch.nan), here)).unfold(0, window, 1)
    valid = windows.isfinite()
    n = valid.sum(-1)
    low = windows.where(valid, torch.inf).amin(-1)
    constant = low == windows.where(valid, -torch.inf).amax(-1)
    # Shifted by a value of the window, so that a mean is not rounded at the scale of the values.
    low = low.where(n > 0, 0.0)
    shifted = (windows - low.unsqueeze(-1)).where(valid, 0.0)
    offset = shifted.sum(-1) / n
    held = n >= min_periods
    if moment == "mean":
        return low.where(constant, low + offset).where(held, torch.nan)
    if moment == "sum":
        return (low * n).where(constant, low * n + shifted.sum(-1)).where(held, torch.nan)
    deviations = (shifted - offset.unsqueeze(-1)).where(valid, 0.0)
    var = (deviations.square().sum(-1) / (n - 1)).where(~constant, 0.0)
    held = held & (n > 1)
    if moment == "var":
        return var.where(held, torch.nan)
    std = var.sqrt()
    if moment == "std":
        return std.where(held, torch.nan)
    value = x_t[begin:end].double()
    score = ((n * (value - low) - shifted.sum(-1)) / (n * std)).where(std != 0, 0.0)
    return score.where(held & value.isfinite(), torch.nan)


def roll_reference_into(moment: str, x: Tensor, window: int, min_periods: int, *, out: Tensor) -> None:
    """The same into `out`."""
    check_out(f"rolling_{moment}", x, out)
    out.copy_(roll_reference(moment, x, window, min_periods))
