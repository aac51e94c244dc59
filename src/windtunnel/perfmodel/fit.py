"""Constants from measured steps: the most likely ones, given their priors and how far runs lie from the model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from windtunnel.perfmodel.constants import Constants, read_log_prior
from windtunnel.perfmodel.estimate import estimate_step
from windtunnel.perfmodel.tables import Run

_ERROR = 0.06
"""Standard deviation of a measured step around the model, in the natural logarithm."""
_OUTLIER = 1.5
"""Deviations from which on a run counts less (soft L1)."""


@dataclass(frozen=True)
class Fit:
    """Constants, and which of them were fitted."""

    constants: Constants
    fitted: tuple[str, ...]
    runs: int


def fit_constants(runs: Sequence[Run], *, fitted: Sequence[str], prior: Constants) -> Fit:
    """The maximum of the posterior over the `fitted` constants; the others stay as in `prior`."""
    steps = [(run.job, run.step_s) for run in runs if run.step_s]
    priors = [read_log_prior(name, prior) for name in fitted]
    means, spreads = (np.array(values) for values in zip(*priors, strict=True))

    def find_residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        constants = _with_logs(prior, fitted, logs)
        errors = [math.log(estimate_step(job, constants).total_s / step_s) / _ERROR for job, step_s in steps]
        return np.array([*errors, *((logs - means) / spreads)])

    found = least_squares(find_residuals, means, loss="soft_l1", f_scale=_OUTLIER)
    return Fit(_with_logs(prior, fitted, found.x), tuple(fitted), len(runs))


def _with_logs(prior: Constants, fitted: Sequence[str], logs: NDArray[np.float64]) -> Constants:
    return replace(prior, **{name: math.exp(value) for name, value in zip(fitted, logs, strict=True)})
