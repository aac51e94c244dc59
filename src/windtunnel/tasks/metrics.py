"""Metrics of forecasts, in float64 on the CPU so that they are the same wherever the forecasts came from."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def score_forecasts(
    outputs: Array, targets: Array, *, volatility_mean: float, volatility_std: float
) -> dict[str, float]:
    """Metrics of (N, 2) outputs of `direction_volatility` against its targets; an undefined one is left out.

    `base_rate` is the accuracy of always naming the commoner direction of this very stretch, which knows
    more than a forecaster may; `volatility_mse` is in squared natural-log units.
    """
    probability = 1 / (1 + np.exp(-np.clip(outputs[:, 0], -500, 500)))
    up = targets[:, 0] > 0.5
    forecast, realised = (volatility_mean + volatility_std * side[:, 1] for side in (outputs, targets))
    scores: dict[str, float | None] = {
        "accuracy": float(np.mean((outputs[:, 0] > 0) == up)),
        "base_rate": float(max(up.mean(), 1 - up.mean())),
        "brier": float(np.mean(np.square(probability - up))),
        "auc": area_under_curve(outputs[:, 0], up),
        "volatility_mse": float(np.mean(np.square(forecast - realised))),
        "volatility_correlation": correlate(forecast, realised),
    }
    return {name: value for name, value in scores.items() if value is not None}


def area_under_curve(scores: Array, positive: NDArray[np.bool_]) -> float | None:
    """Chance that a positive sample scores above a negative one, ties counted half; None without both kinds.

    Source: the Mann-Whitney U statistic over the product of the two counts.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return None
    _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    u_statistic = mean_rank[group][positive].sum() - positives * (positives + 1) / 2
    return float(u_statistic / (positives * negatives))


def correlate(left: Array, right: Array) -> float | None:
    """Pearson's correlation; None where one side never varies."""
    left, right = left - left.mean(), right - right.mean()
    norm = np.sqrt(np.sum(left * left) * np.sum(right * right))
    return float(np.sum(left * right) / norm) if norm > 0 else None
