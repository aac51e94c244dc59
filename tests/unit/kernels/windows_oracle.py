"""What the tests of rolling moments share: hard series, and two-pass truths."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from windtunnel.kernels import windows

FUNCTIONS = {name: getattr(windows, f"rolling_{name}") for name in windows.MOMENTS}


def make_series(kind: str, rows: int, columns: int, *, seed: int = 0) -> Tensor:
    """Float64 (T, C) of one kind."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    chance = torch.rand(rows, columns, generator=generator)
    if kind == "returns":
        return noise
    if kind == "prices":
        return 100 + 0.01 * noise.cumsum(0)
    if kind == "huge":
        return 1e7 + noise.cumsum(0)
    if kind == "ticks":
        return 47 + 0.01 * (noise / 2).round().cumsum(0)
    if kind == "spikes":
        return (noise + 5).where(chance > 0.003, 1e10 * noise)
    if kind == "gaps":
        x = (noise + 5).where(chance > 0.1, torch.nan)
        return x.where((chance < 0.995) | (chance > 0.998), torch.inf).where(chance < 0.998, -torch.inf)
    assert kind == "late"
    x = noise.clone()
    x[: rows // 2] = torch.nan
    return x


KINDS = ("returns", "prices", "huge", "ticks", "spikes", "gaps", "late")


def run_pandas(moment: str, x_tc: Tensor, window: int, min_periods: int) -> Tensor:
    """The moment by pandas, whose rules are ours; a missing value has no z-score."""
    frame = pd.DataFrame(x_tc.double().numpy()).replace([np.inf, -np.inf], np.nan)
    rolling = frame.rolling(window, min_periods=min_periods)
    if moment != "zscore":
        return torch.from_numpy(getattr(rolling, moment)().to_numpy(copy=True))
    std = rolling.std()
    score = ((frame - rolling.mean()) / std).where(std != 0, 0.0).where(frame.notna() & std.notna())
    return torch.from_numpy(score.to_numpy(copy=True))


def find_error(ours: Tensor, truth: Tensor, scale: Tensor) -> float:
    """The largest of |ours - truth| / max(|truth|, 1e-6 scale); both are NaN in the same places."""
    assert torch.equal(ours.isnan(), truth.isnan())
    error = (ours.double() - truth).abs() / torch.maximum(truth.abs(), 1e-6 * scale.abs())
    return float(error.where(ours.double() != truth, 0.0).nan_to_num(0.0).max()) if error.numel() else 0.0
