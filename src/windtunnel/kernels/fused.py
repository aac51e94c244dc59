"""Many rolling features of the same series in one pass over memory: `torch.ops.windtunnel.fused_features`.

Rules are those of `windtunnel.kernels.windows`. Moments of equal windows share their sums. Results are planes
(F, ...), one after another, since each is written from end to end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from windtunnel.errors import SettingsError, UserError
from windtunnel.kernels.backend import choose_namespace
from windtunnel.kernels.gradients import differentiate
from windtunnel.kernels.reference_windows import roll_reference
from windtunnel.kernels.rules import check_rolling, find_time_dim
from windtunnel.kernels.schema import define_gradient, define_operator
from windtunnel.kernels.windows import MOMENTS
from windtunnel.settings.kernels import Backend

_NAME = "fused_features"


@dataclass(frozen=True)
class Feature:
    """A rolling moment (mean, sum, var, std, zscore) of a window; `min_periods` is by default the window."""

    moment: str
    window: int
    min_periods: int | None = None


def fused_features(
    x: Tensor, features: Sequence[Feature], *, out: Tensor | None = None, backend: Backend = "auto"
) -> Tensor:
    """All features of `x`, (F, *x.shape) in its dtype, into `out` where there is one (contiguous).

    Raises UserError or SettingsError for what rolling operators refuse too, and for no feature at all.
    """
    check_features(x, features)
    moments, windows, least = split_features(features)
    operator = getattr(torch.ops, choose_namespace(backend)).fused_features
    if out is None:
        result: Tensor = operator(x, moments, windows, least)
        return result
    _check_out(x, moments, out)
    operator.out(x, moments, windows, least, out=out)
    return out


def check_features(x: Tensor, features: Sequence[Feature]) -> None:
    """Raise UserError or SettingsError, naming the value, for what fused_features does not take."""
    if not features:
        raise SettingsError(f"{_NAME}: no features: name one or more, such as Feature('mean', 20)")
    for feature in features:
        if feature.moment not in MOMENTS:
            raise SettingsError(f"{_NAME}: moment {feature.moment!r}, expected one of {', '.join(MOMENTS)}")
    _check(x, *split_features(features)[1:])


def split_features(features: Sequence[Feature]) -> tuple[list[int], list[int], list[int]]:
    """Indices of moments, windows and min_periods of `features`, as the operator takes them."""
    return (
        [MOMENTS.index(feature.moment) for feature in features],
        [feature.window for feature in features],
        [feature.window if feature.min_periods is None else feature.min_periods for feature in features],
    )


def _check(x: Tensor, windows: Sequence[int], min_periods: Sequence[int]) -> None:
    for window, least in zip(windows, min_periods, strict=True):
        check_rolling(_NAME, x, window, least)


def _check_out(x: Tensor, moments: Sequence[int], out: Tensor) -> None:
    shape = (len(moments), *x.shape)
    if out.shape != shape or out.dtype != x.dtype or out.device != x.device or not out.is_contiguous():
        raise UserError(
            f"{_NAME}: out is {tuple(out.shape)} {out.dtype} on {out.device}, expected {shape} {x.dtype} on "
            f"{x.device}, contiguous: make it with x.new_empty"
        )


def _reference(
    x: Tensor,
    moments: Sequence[int],
    windows: Sequence[int],
    min_periods: Sequence[int],
    origin: int = 0,
    first: int = 0,
) -> Tensor:
    del origin  # the reference sums every window anew
    planes = [
        roll_reference(MOMENTS[moment], x, window, least)
        for moment, window, least in zip(moments, windows, min_periods, strict=True)
    ]
    time = find_time_dim(x)
    return torch.stack(planes).narrow(time + 1, first, x.shape[time] - first)


def _reference_into(
    x: Tensor, moments: Sequence[int], windows: Sequence[int], min_periods: Sequence[int], *, out: Tensor
) -> None:
    _check_out(x, moments, out)
    out.copy_(_reference(x, moments, windows, min_periods))


def _fake(
    x: Tensor,
    moments: Sequence[int],
    windows: Sequence[int],
    min_periods: Sequence[int],
    origin: int = 0,
    first: int = 0,
) -> Tensor:
    del origin
    _check(x, windows, min_periods)
    time = find_time_dim(x)
    return x.new_empty((len(moments), *x.shape)).narrow(time + 1, first, x.shape[time] - first)


def _fake_out(
    x: Tensor, moments: Sequence[int], windows: Sequence[int], min_periods: Sequence[int], *, out: Tensor
) -> None:
    _check(x, windows, min_periods)
    _check_out(x, moments, out)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.moments, ctx.windows, ctx.min_periods, _, ctx.first = inputs
    ctx.save_for_backward(x)


def _differentiate(namespace: str, ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    """The sum of the features' own derivatives."""
    assert ctx.first == 0, "a stream keeps rows and not their history"
    (x,) = ctx.saved_tensors
    total = torch.zeros_like(x)
    for index, moment in enumerate(ctx.moments):
        rules = (ctx.windows[index], ctx.min_periods[index])
        total = total + differentiate(MOMENTS[moment], namespace, x, rules, gradient=gradient[index])
    return total, None, None, None, None, None


define_operator(
    _NAME,
    "(Tensor x, int[] moments, int[] windows, int[] min_periods, int origin=0, int first=0) -> Tensor",
    reference=_reference,
    fake=_fake,
)
define_operator(
    f"{_NAME}.out",
    "(Tensor x, int[] moments, int[] windows, int[] min_periods, *, Tensor(a!) out) -> ()",
    reference=_reference_into,
    fake=_fake_out,
)
define_gradient(_NAME, _differentiate, _save)
