"""The recipe `daily`: daily series on the days of one of them, each by its last value of that day or before.

Of a series with `close`, that is the value, with the day's range from `high` and `low` and the `volume`; of any
other, every column is a value. Values become returns and log levels in percent: fixed units, whatever the sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.featurize.signals import Floats, Signal, Table, differences, log_positive, take_as_of

DAY_NS = 86_400_000_000_000
PERCENT = 100.0


@dataclass(frozen=True)
class Series:
    """One instrument's shard: days since 1970, ascending, and its columns."""

    instrument: str
    day: NDArray[np.int64]
    columns: Mapping[str, Floats]


def make_series(instrument: str, arrays: Mapping[str, NDArray[Any]]) -> Series:
    """The series of a shard; raises InputFileError for one without numbers or with several rows a day."""
    day = arrays["time_ns"] // DAY_NS
    if bool(np.any(day[1:] <= day[:-1])):
        raise InputFileError(
            f"shard of {instrument!r} has several rows on one day, expected one each: recipe 'daily' is for daily "
            "series; use recipe 'quotes' for quotes"
        )
    columns = {
        name: array.astype(np.float64)
        for name, array in arrays.items()
        if name != "time_ns" and array.ndim == 1 and np.issubdtype(array.dtype, np.number)
    }
    if not columns:
        raise InputFileError(f"shard of {instrument!r} has no numeric column, expected close or any value")
    return Series(instrument, day, columns)


def build_daily(reference: Series, others: tuple[Series, ...]) -> Table:
    """All signals on the days on which the reference has a price above zero; its own come first."""
    names = name_values(reference)
    if len(names) > 1:
        raise InputFileError(
            f"reference {reference.instrument!r} has columns {', '.join(names)} and no close, so that its price is "
            "not known: call the price's column Close in its file, or choose another features.reference"
        )
    price_column = reference.columns[names[0]]
    kept = np.isfinite(price_column) & (price_column > 0)
    if not kept.any():
        raise InputFileError(f"reference {reference.instrument!r} has no price above zero: choose another reference")
    day = reference.day[kept]
    own = list_signals(reference, day)
    rest = [signal for series in others for signal in list_signals(series, day)]
    return Table(day * DAY_NS, price_column[kept], (*own, *rest), owned=len(own))


def name_values(series: Series) -> tuple[str, ...]:
    """The columns that are values of `series`: `close`, or all."""
    return ("close",) if "close" in series.columns else tuple(series.columns)


def list_signals(series: Series, day: NDArray[np.int64]) -> list[Signal]:
    """The signals of one series as they are known on each `day`."""

    def as_of(values: Floats) -> Floats:
        return take_as_of(values, series.day, at=day)

    name, columns = series.instrument, series.columns
    signals = []
    for value in name_values(series):
        level = log_positive(as_of(np.where(columns[value] > 0, columns[value], np.nan)), scale=PERCENT)
        signals.append(Signal(f"{name}.{value}.logret", "percent", differences(level)))
        signals.append(Signal(f"{name}.{value}.log", "percent", level, is_level=True))
    if {"close", "high", "low"} <= columns.keys():
        spread = log_positive(columns["high"], scale=PERCENT) - log_positive(columns["low"], scale=PERCENT)
        signals.append(Signal(f"{name}.range.log", "percent", as_of(spread)))
    if {"close", "volume"} <= columns.keys():
        volume = np.where(columns["volume"] >= 0, columns["volume"], np.nan)
        signals.append(Signal(f"{name}.volume.log", "log of 1 + volume", as_of(np.log1p(volume)), is_level=True))
    return signals
