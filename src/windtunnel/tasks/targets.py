"""Targets of `direction_volatility`: from a price, the sign of the next return and the next rows' volatility."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from windtunnel.errors import InputFileError

VOLATILITY_FLOOR = 1e-5
"""Least realised volatility a row, before the logarithm. A price that stands still over the horizon has
none (four of five windows of a day of quotes), and its logarithm would be minus infinity; a tenth of a
basis point is below one tick of any price that moves, and keeps still and moving windows a few units apart."""


@dataclass(frozen=True)
class Targets:
    """What is forecast at each row t, from rows t + 1 to t + horizon; the last `horizon` rows have none."""

    up: NDArray[np.float32]
    """(T - horizon,): 1 where the next return is above 0, else 0 (a price that stands still is not up)."""
    log_volatility: NDArray[np.float32]
    """(T - horizon,): natural logarithm of the root mean square of the next `horizon` log returns, floored."""


def make_targets(price: NDArray[np.float64], *, horizon: int) -> Targets:
    """Targets of every row that has a whole horizon after it; raises InputFileError for a price without logarithm."""
    check_price(price)
    if len(price) <= horizon:
        raise InputFileError(f"{len(price)} rows of price are not more than task.horizon = {horizon}: use more data")
    returns = np.diff(np.log(price))  # returns[t] is that of row t + 1 over row t
    mean_square = sliding_window_view(np.square(returns), horizon).mean(axis=1)
    volatility = np.maximum(np.sqrt(mean_square), VOLATILITY_FLOOR)
    up = returns[: len(price) - horizon] > 0
    return Targets(up.astype(np.float32), np.log(volatility).astype(np.float32))


def check_price(price: NDArray[Any]) -> None:
    """Raise InputFileError at the first price that is not finite and positive."""
    bad = np.flatnonzero(~(np.isfinite(price) & (price > 0)))
    if len(bad):
        raise InputFileError(
            f"price at row {bad[0]} is {price[bad[0]]!r} ({len(bad)} such rows), expected a positive number: "
            "choose another features.reference or clean the series"
        )
