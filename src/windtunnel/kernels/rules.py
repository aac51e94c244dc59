"""What the rolling operators take: checks with messages, defaults, and the layouts that need no copy."""

import torch
from torch import Tensor

from windtunnel.errors import SettingsError, UserError

DTYPES = (torch.float32, torch.float64)
LAYOUTS = "(T,), (T, C) or (B, T, C)"


def check_rolling(name: str, x: Tensor, window: int, min_periods: int) -> None:
    """Raise UserError or SettingsError, naming the value, for what operator `name` does not take."""
    if not 1 <= x.dim() <= 3:
        raise UserError(f"{name}: x has shape {tuple(x.shape)}, expected {LAYOUTS}: reshape it")
    if x.dtype not in DTYPES:
        raise UserError(f"{name}: x is {x.dtype}, expected float32 or float64: convert it first")
    if window < 1:
        raise SettingsError(f"{name}: window={window}, expected 1 row or more")
    if not 1 <= min_periods <= window:
        raise SettingsError(f"{name}: min_periods={min_periods}, expected 1 to window={window}")


def check_out(name: str, x: Tensor, out: Tensor) -> None:
    """Raise UserError where `out` cannot take the result for `x`."""
    if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        raise UserError(
            f"{name}: out is {tuple(out.shape)} {out.dtype} on {out.device}, expected {tuple(x.shape)} {x.dtype} on "
            f"{x.device}: make it with torch.empty_like(x)"
        )


def find_time_dim(x: Tensor) -> int:
    """The dimension of rows: the first of one dimension, else the last but one."""
    return 0 if x.dim() == 1 else x.dim() - 2


def make_result(x: Tensor) -> Tensor:
    """An empty result for `x`, laid out as the compiled operators do: like `x` where that has neighbouring rows or
    columns as neighbours in memory, else contiguous.
    """
    time = find_time_dim(x)
    columns = x.shape[time + 1] if x.dim() > 1 else 1
    rows_adjacent = x.stride(time) == 1 or columns * x.shape[time] <= 1
    columns_adjacent = columns > 1 and x.stride(time + 1) == 1
    return torch.empty_like(x if rows_adjacent or columns_adjacent else x.contiguous())
