"""Derivatives of rolling moments, themselves made of rolling sums, so that they can be differentiated again.

A row takes part in the windows that end at it and at the w - 1 rows after it: a rolling sum over the rows in reverse.
"""

from typing import Any

import torch
from torch import Tensor

from windtunnel.kernels.rules import find_time_dim


def save_inputs(ctx: Any, inputs: tuple[Tensor, int, int], output: Tensor) -> None:
    """What the derivatives need."""
    x, ctx.window, ctx.min_periods = inputs
    ctx.save_for_backward(x)


def find_gradient(moment: str, namespace: str, ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    """The gradient by x of one operator."""
    (x,) = ctx.saved_tensors
    rules = (ctx.window, ctx.min_periods)
    return differentiate(moment, namespace, x, rules, gradient=gradient), None, None


def differentiate(moment: str, namespace: str, x: Tensor, rules: tuple[int, int], *, gradient: Tensor) -> Tensor:
    """The gradient by x; 0 where x is missing, and from windows that are NaN or constant (of std and z-score).

    `rules` are the window and its min_periods.
    """
    window, min_periods = rules
    ops, time = getattr(torch.ops, namespace), find_time_dim(x)
    valid = x.isfinite()
    # Shifted, which changes no derivative: the products below then do not cancel.
    values = x.double().where(valid, 0.0)
    shift = (values.sum(time, keepdim=True) / valid.sum(time, keepdim=True).clamp(min=1)).detach()
    values = (values - shift).where(valid, 0.0)
    known = values.where(valid, torch.nan)
    n = ops.rolling_sum(valid.double(), window, 1)
    least = min_periods if moment in ("mean", "sum") else max(2, min_periods)
    held = n >= least

    def add_later(of_windows: Tensor) -> Tensor:
        """For each row, the sum over the windows that hold it."""
        reverse = of_windows.flip(time).contiguous()
        total: Tensor = ops.rolling_sum(reverse, window, 1)
        return total.flip(time)

    g = gradient.double().where(held, 0.0)
    if moment in ("mean", "sum"):
        result = add_later(g / n.clamp(min=1) if moment == "mean" else g)
        return result.where(valid, 0.0).to(x.dtype)

    mean = ops.rolling_mean(known, window, 1).nan_to_num(0.0)
    var = ops.rolling_var(known, window, 1).nan_to_num(0.0)
    less = (n - 1).clamp(min=1)
    if moment == "var":
        a = 2 * g / less
        result = values * add_later(a) - add_later(a * mean)
        return result.where(valid, 0.0).to(x.dtype)
    spread = held & (var > 0)
    std = var.where(spread, 1.0).sqrt()
    g = g.where(spread, 0.0)
    if moment == "std":
        a = g / (less * std)
        result = values * add_later(a) - add_later(a * mean)
        return result.where(valid, 0.0).to(x.dtype)
    g = g.where(valid, 0.0)
    score = (values - mean) / std
    b = g * score / (less * std.square())
    by_score: Tensor = g / std - add_later(g / (n.clamp(min=1) * std)) - (values * add_later(b) - add_later(b * mean))
    return by_score.where(valid, 0.0).to(x.dtype)
