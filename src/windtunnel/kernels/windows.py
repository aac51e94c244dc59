"""Rolling mean, sum, variance, standard deviation and z-score along time; docs/kernels.md has the rules in full.

`x` is (T,), (T, C) or (B, T, C), float32 or float64. A window at row t holds rows t - w + 1 .. t. NaN and infinity
are missing values; fewer than `min_periods` values (by default the whole window) give NaN. Sums are float64 and start
anew every thousand rows or so; the deviation of equal values is exactly 0. No count of threads changes a bit.
"""

from functools import partial

import torch
from torch import Tensor

from windtunnel.kernels.backend import choose_namespace
from windtunnel.kernels.gradients import find_gradient, save_inputs
from windtunnel.kernels.reference_windows import roll_reference, roll_reference_into
from windtunnel.kernels.rules import check_out, check_rolling, find_time_dim, make_result
from windtunnel.kernels.schema import define_gradient, define_operator, load_native
from windtunnel.settings.kernels import Backend

MOMENTS = ("mean", "sum", "var", "std", "zscore")


def rolling_mean(
    x: Tensor, window: int, *, min_periods: int | None = None, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """Mean of the values in each window; shape and dtype of `x`. Raises UserError or SettingsError."""
    return _roll("mean", x, (window, min_periods), out=out, backend=backend)


def rolling_sum(
    x: Tensor, window: int, *, min_periods: int | None = None, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """Sum of the values in each window."""
    return _roll("sum", x, (window, min_periods), out=out, backend=backend)


def rolling_var(
    x: Tensor, window: int, *, min_periods: int | None = None, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """Sample variance (n - 1) of each window; NaN for one value."""
    return _roll("var", x, (window, min_periods), out=out, backend=backend)


def rolling_std(
    x: Tensor, window: int, *, min_periods: int | None = None, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """Sample standard deviation (n - 1) of each window; NaN for one value."""
    return _roll("std", x, (window, min_periods), out=out, backend=backend)


def rolling_zscore(
    x: Tensor, window: int, *, min_periods: int | None = None, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """The row's own value less the mean, by the deviation, of its window; 0 where the deviation is."""
    return _roll("zscore", x, (window, min_periods), out=out, backend=backend)


def _roll(moment: str, x: Tensor, window: tuple[int, int | None], *, out: Tensor | None, backend: Backend) -> Tensor:
    name, length = f"rolling_{moment}", window[0]
    min_periods = length if window[1] is None else window[1]
    check_rolling(name, x, length, min_periods)
    operator = getattr(getattr(torch.ops, choose_namespace(backend)), name)
    if out is None:
        result: Tensor = operator(x, length, min_periods)
        return result
    check_out(name, x, out)
    operator.out(x, length, min_periods, out=out)
    return out


def _make_fake(name: str, x: Tensor, window: int, min_periods: int) -> Tensor:
    check_rolling(name, x, window, min_periods)
    return make_result(x)


def _fake_out(name: str, x: Tensor, window: int, min_periods: int, *, out: Tensor) -> None:
    check_rolling(name, x, window, min_periods)
    check_out(name, x, out)


def _resume_reference(x: Tensor, moment: int, window: int, min_periods: int, origin: int, first: int) -> Tensor:
    del origin  # the reference sums every window anew
    time = find_time_dim(x)
    rows = roll_reference(MOMENTS[moment], x, window, min_periods)
    return rows.narrow(time, first, x.shape[time] - first)


def _resume_fake(x: Tensor, moment: int, window: int, min_periods: int, origin: int, first: int) -> Tensor:
    del origin
    time = find_time_dim(x)
    return _make_fake(f"rolling_{MOMENTS[moment]}", x, window, min_periods).narrow(time, first, x.shape[time] - first)


def _define(moment: str) -> None:
    name = f"rolling_{moment}"
    define_operator(
        name,
        "(Tensor x, int window, int min_periods) -> Tensor",
        reference=partial(roll_reference, moment),
        fake=partial(_make_fake, name),
    )
    define_operator(
        f"{name}.out",
        "(Tensor x, int window, int min_periods, *, Tensor(a!) out) -> ()",
        reference=partial(roll_reference_into, moment),
        fake=partial(_fake_out, name),
    )
    define_gradient(name, partial(find_gradient, moment), save_inputs)


for _moment in MOMENTS:
    _define(_moment)
define_operator(
    "rolling_resume",
    "(Tensor x, int moment, int window, int min_periods, int origin, int first) -> Tensor",
    reference=_resume_reference,
    fake=_resume_fake,
)
load_native()
