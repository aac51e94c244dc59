"""The order in which an epoch visits samples: a pure function, so that a resumed run continues the same epoch."""

import numpy as np
from numpy.typing import NDArray


def sample_order(n: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation of 0 to n - 1 that depends on nothing but its arguments."""
    return np.random.default_rng([seed, epoch]).permutation(n).astype(np.int64, copy=False)
