"""Windows over a feature shard held in memory: a sample is the rows up to its end, and never a later one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WindowIndex:
    """The windows that can be samples: `ends` are their last rows, ascending; each is `window` rows long."""

    ends: NDArray[np.int64]
    window: int

    def __len__(self) -> int:
        return len(self.ends)


def index_windows(
    n_rows: int, *, window: int, horizon: int = 0, usable: NDArray[np.bool_] | None = None
) -> WindowIndex:
    """Windows whose rows all exist, and are all `usable` (shape (T,)), with `horizon` rows left after the end."""
    assert window > 0, f"window is {window}, expected at least one row"
    assert horizon >= 0, f"horizon is {horizon}, expected none or more rows"
    ends = np.arange(window - 1, n_rows - horizon, dtype=np.int64)
    if usable is not None:
        assert usable.shape == (n_rows,), f"usable has shape {usable.shape}, expected ({n_rows},)"
        unusable_before = np.concatenate(([0], np.cumsum(~usable)))
        ends = ends[unusable_before[ends + 1] == unusable_before[ends + 1 - window]]
    return WindowIndex(ends, window)


def find_usable_rows(features_tc: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Rows without NaN or infinity, shape (T,): warm-up rows of rolling features are not among them."""
    return np.asarray(np.isfinite(features_tc).all(axis=1))


def gather_windows(
    features_tc: NDArray[np.float32], index: WindowIndex, samples: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The windows of `samples` (positions in `index`) as one contiguous x_btc, float32."""
    assert features_tc.dtype == np.float32, f"features are {features_tc.dtype}, expected float32"
    assert samples.size == 0 or int(samples.min()) >= 0, "a negative sample would count from the end"
    rows_bt = index.ends[samples][:, None] + np.arange(1 - index.window, 1, dtype=np.int64)
    return np.take(features_tc, rows_bt, axis=0)
