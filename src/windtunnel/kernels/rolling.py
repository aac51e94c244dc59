"""Rolling mean, sample standard deviation and z-score of every column over several windows, in one pass.

Rules, the same here, in `reference` and in the compiled library:
- A window at row t holds rows t - w + 1 .. t; at the start it holds the rows there are.
- NaN values are skipped. Fewer than `min_periods` values left give NaN. A row that is NaN itself has a mean and a
  deviation of the values before it, but no z-score.
- An infinity makes all three NaN in the windows that hold it, and leaves no trace in later ones.
- The deviation divides by n - 1, so that of one value is NaN. Equal values have exactly their own value as mean,
  a deviation of exactly 0, and a z-score of 0.
- State is float64 on shifted values, whatever the input: float32 results are right to 1e-5 of the window's scale,
  also where it is tiny beside the values. The count of threads does not change a bit of the result.

Registered as `torch.ops.windtunnel.rolling_moments`. It has no derivative: `backward` through it raises.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from windtunnel.errors import SettingsError, UserError
from windtunnel.native.library import BEST_SET, load_library

MOMENTS = ("mean", "std", "zscore")
_FUNCTIONS = {torch.float32: "windtunnel_rolling_moments_f32", torch.float64: "windtunnel_rolling_moments_f64"}


def rolling_moments(x_tc: Tensor, windows: Sequence[int], *, min_periods: int, threads: int = 1) -> Tensor:
    """Mean, standard deviation and z-score (T, C, W, 3) of `x_tc` (T, C), float32 or float64, on the CPU.

    Raises UserError for another shape or dtype, SettingsError for windows, `min_periods` or `threads` out of range.
    """
    result: Tensor = torch.ops.windtunnel.rolling_moments(
        x_tc, list(windows), min_periods=min_periods, threads=threads
    )
    return result


# `torch.library.custom_op` would say this in one decorator, and import the whole compiler at the first call.
torch.library.define(
    "windtunnel::rolling_moments", "(Tensor x_tc, int[] windows, *, int min_periods, int threads=1) -> Tensor"
)


@torch.library.impl("windtunnel::rolling_moments", "CPU")
def _rolling_moments_cpu(x_tc: Tensor, windows: Sequence[int], *, min_periods: int, threads: int = 1) -> Tensor:
    check_arguments(x_tc, windows, min_periods=min_periods, threads=threads)
    x_tc = x_tc.contiguous()
    rows, columns = x_tc.shape
    out = x_tc.new_empty((rows, columns, len(windows), len(MOMENTS)))
    function = getattr(load_library(), _FUNCTIONS[x_tc.dtype])
    lengths = (ctypes.c_int64 * len(windows))(*windows)
    pointers = (x_tc.data_ptr(), out.data_ptr())
    if function(*pointers, rows, columns, lengths, len(windows), min_periods, threads, BEST_SET):
        raise MemoryError(f"rolling_moments: no memory for the scratch of {threads} threads")
    return out


def _rolling_moments_fake(x_tc: Tensor, windows: Sequence[int], *, min_periods: int, threads: int = 1) -> Tensor:
    check_arguments(x_tc, windows, min_periods=min_periods, threads=threads)
    return x_tc.new_empty((x_tc.shape[0], x_tc.shape[1], len(windows), len(MOMENTS)))


def _refuse_backward(_context: Any, _gradient: Tensor) -> None:
    raise UserError("rolling_moments has no derivative: give it x.detach(), or use kernels.reference for gradients")


torch.library.register_fake("windtunnel::rolling_moments", _rolling_moments_fake)
torch.library.register_autograd("windtunnel::rolling_moments", _refuse_backward)


def check_arguments(x_tc: Tensor, windows: Sequence[int], *, min_periods: int, threads: int = 1) -> None:
    """Raise UserError or SettingsError, naming the value, for what the kernel does not take."""
    if x_tc.dim() != 2:
        raise UserError(f"rolling_moments: x has shape {tuple(x_tc.shape)}, expected (T, C): reshape it")
    if x_tc.dtype not in _FUNCTIONS:
        raise UserError(f"rolling_moments: x is {x_tc.dtype}, expected float32 or float64: convert it first")
    if not windows or min(windows) < 1:
        raise SettingsError(f"windows {list(windows)}: expected at least one, each of 1 row or more")
    if not 1 <= min_periods <= min(windows):
        raise SettingsError(
            f"min_periods={min_periods}: expected 1 to {min(windows)}, the shortest of windows {list(windows)}"
        )
    if threads < 1:
        raise SettingsError(f"threads={threads}: expected 1 or more")
