"""Signals to features: each signal, and its rolling mean (of a level: the distance from it), deviation and z-score.

Rows before every feature of the forecast instrument is known are dropped. A NaN that is left takes the feature's
last value; where there is none yet (a series that begins later) it is 0, which for returns, distances and z-scores
means that nothing is known. Only rows up to its own enter a feature, and no statistic of the whole sample.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.featurize.signals import Floats, Signal, Table, carry_forward
from windtunnel.kernels.fused import Feature, fused_features
from windtunnel.records.data import Column
from windtunnel.settings.features import FeatureSettings
from windtunnel.settings.kernels import Backend


@dataclass(frozen=True)
class Features:
    """What a feature shard holds: `columns` describe those of `features_tc`, float32 and finite."""

    time_ns: NDArray[np.int64]
    price: Floats
    features_tc: NDArray[np.float32]
    columns: tuple[Column, ...]


def expand_table(table: Table, settings: FeatureSettings, *, backend: Backend = "auto") -> Features:
    """All features of `table`; raises InputFileError when no row has those of the forecast instrument."""
    values_tc = np.stack([signal.values for signal in table.signals], axis=1)
    moments_tcw3 = find_moments(values_tc, settings, backend=backend)
    blocks = [
        expand_signal(signal, moments_tcw3[:, index], settings.windows) for index, signal in enumerate(table.signals)
    ]
    features_tc = np.concatenate([values for values, _ in blocks], axis=1)
    owned = sum(len(columns) for _, columns in blocks[: table.owned])
    first = find_first_row(features_tc[:, :owned])
    if first is None:
        raise InputFileError(
            f"{len(table.time_ns)} rows are too few for features.min_periods={settings.min_periods}: "
            "give more rows or lower it"
        )
    kept_tc = fill_unknown(features_tc)[first:].astype(np.float32)
    columns = tuple(column for _, columns in blocks for column in columns)
    _check_finite(kept_tc, columns)
    return Features(table.time_ns[first:], table.price[first:], kept_tc, columns)


def find_moments(values_tc: Floats, settings: FeatureSettings, *, backend: Backend = "auto") -> Floats:
    """Mean, deviation and z-score (T, C, W, 3) of every signal over every window."""
    features = [
        Feature(moment, window, settings.min_periods)
        for window in settings.windows
        for moment in ("mean", "std", "zscore")
    ]
    with use_threads(settings.threads):
        planes_ftc = fused_features(torch.from_numpy(values_tc), features, backend=backend).numpy()
    moments_tcf: Floats = np.moveaxis(planes_ftc, 0, -1)
    return moments_tcf.reshape(*values_tc.shape, len(settings.windows), 3)


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """So many threads of torch's inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def expand_signal(signal: Signal, moments_tw3: Floats, windows: tuple[int, ...]) -> tuple[Floats, tuple[Column, ...]]:
    """One signal's features (T, F) and their columns, in the order itself, then window by window."""
    values = [] if signal.is_level else [signal.values]
    columns = [] if signal.is_level else [Column(signal.name, "float32", signal.unit)]
    for index, window in enumerate(windows):
        mean, std, zscore = moments_tw3[:, index].T
        first = ("gap", signal.values - mean) if signal.is_level else ("mean", mean)
        for moment, series, unit in ((*first, signal.unit), ("std", std, signal.unit), ("zscore", zscore, "")):
            values.append(series)
            columns.append(Column(f"{signal.name}.{moment}_{window}", "float32", unit))
    return np.stack(values, axis=1), tuple(columns)


def find_first_row(features_tc: Floats) -> int | None:
    """The first row without NaN, or None."""
    known = np.isfinite(features_tc).all(axis=1)
    return int(known.argmax()) if known.any() else None


def fill_unknown(features_tc: Floats) -> Floats:
    """Each NaN replaced by its column's last value, or by 0 where there is none."""
    filled_tc = features_tc.copy()
    for column in np.flatnonzero(~np.isfinite(features_tc).all(axis=0)):
        filled_tc[:, column] = np.nan_to_num(carry_forward(features_tc[:, column]), nan=0.0)
    return filled_tc


def _check_finite(features_tc: NDArray[np.float32], columns: tuple[Column, ...]) -> None:
    wrong = ~np.isfinite(features_tc).all(axis=0)
    assert not wrong.any(), f"not finite in float32: {columns[int(wrong.argmax())].name}"
