"""Scaling fitted on the training rows alone, so that nothing of later rows reaches what a model sees."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK_ROWS = 65536
CLIP = 8.0
"""Scaled features are cut at this many standard deviations: a single print must not own a gradient."""


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation by column; a column that never varies has deviation 0."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]


def fit_scale(x_tc: NDArray[np.float32]) -> Scale:
    """Scale of the finite values of each column of (T, C), in float64; a column without any has mean 0."""
    finite_count = np.zeros(x_tc.shape[1])
    total = np.zeros(x_tc.shape[1])
    for block in _blocks(x_tc):
        finite = np.isfinite(block)
        finite_count += finite.sum(0)
        total += np.where(finite, block, 0.0).sum(0)
    counts = np.maximum(finite_count, 1)
    mean = total / counts
    # A second pass over deviations: sums of squares would cancel on prices far from zero.
    squares = np.zeros(x_tc.shape[1])
    for block in _blocks(x_tc):
        squares += np.where(np.isfinite(block), np.square(block - mean), 0.0).sum(0)
    std = np.sqrt(squares / counts)
    # What float32 rounding alone gives a constant column is no variation.
    return Scale(mean, np.where(std > 1e-6 * np.abs(mean), std, 0.0))


def apply_scale(x_tc: NDArray[np.float32], scale: Scale) -> NDArray[np.float32]:
    """(T, C) scaled and cut at CLIP; values that are missing or infinite, and constant columns, become 0."""
    scaled = np.empty(x_tc.shape, dtype=np.float32)
    factor = np.where(scale.std > 0, 1 / np.where(scale.std > 0, scale.std, 1), 0.0)
    for start in range(0, len(x_tc), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        block = np.where(np.isfinite(x_tc[rows]), (x_tc[rows] - scale.mean) * factor, 0.0)
        scaled[rows] = np.clip(block, -CLIP, CLIP)
    return scaled


def _blocks(x_tc: NDArray[np.float32]) -> Iterator[NDArray[np.float64]]:
    for start in range(0, len(x_tc), _BLOCK_ROWS):
        yield x_tc[start : start + _BLOCK_ROWS].astype(np.float64)
