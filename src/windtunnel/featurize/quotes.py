"""The recipe `quotes`: quotes of one side each, in time order, become the state of both sides at each moment.

Each side keeps its last price and size. Rows begin when both sides are known; of several rows at one moment the
last state stands. Prices become log returns and distances in basis points: fixed units, whatever the sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.featurize.signals import Floats, Signal, Table, carry_forward, differences, log_positive

COLUMNS = ("time_ns", "bid_price", "bid_size", "ask_price", "ask_size")
BASIS_POINTS = 1e4
_MS = 1e-6


@dataclass(frozen=True)
class Book:
    """Best bid and offer, one row a moment."""

    time_ns: NDArray[np.int64]
    bid: Floats
    ask: Floats
    bid_size: Floats
    ask_size: Floats


def build_quotes(instrument: str, arrays: Mapping[str, NDArray[Any]]) -> Table:
    """Return, spread, imbalance, pace and level of `instrument`'s mid price at each moment of its quotes."""
    book = find_book(instrument, arrays)
    mid = (book.bid + book.ask) / 2
    level = log_positive(mid, scale=BASIS_POINTS)
    spread = log_positive(book.ask, scale=BASIS_POINTS) - log_positive(book.bid, scale=BASIS_POINTS)
    total = book.bid_size + book.ask_size
    imbalance = np.divide(book.bid_size - book.ask_size, total, out=np.zeros_like(total), where=total > 0)
    pace = np.log1p(differences(book.time_ns.astype(np.float64)) * _MS)
    signals = (
        Signal(f"{instrument}.mid.logret", "basis points", differences(level)),
        Signal(f"{instrument}.spread", "basis points", spread),
        Signal(f"{instrument}.imbalance", "bid less ask size over their sum", imbalance),
        Signal(f"{instrument}.interval.log", "log of 1 + ms since the row before", pace),
        Signal(f"{instrument}.mid.log", "basis points", level, is_level=True),
    )
    return Table(book.time_ns, mid, signals, owned=len(signals))


def find_book(instrument: str, arrays: Mapping[str, NDArray[Any]]) -> Book:
    """The state of both sides at each moment from when both are known; raises InputFileError when they never are."""
    time_ns = arrays["time_ns"]
    # A side that a row does not quote has no price; its size there says nothing.
    bid, bid_size = _carry_side(arrays["bid_price"], arrays["bid_size"])
    ask, ask_size = _carry_side(arrays["ask_price"], arrays["ask_size"])
    both = np.isfinite(bid) & np.isfinite(ask)
    if not both.any():
        raise InputFileError(
            f"quotes of {instrument!r} never have both a bid and an offer in {len(time_ns)} rows: "
            "raise data.max_rows or choose another reference"
        )
    last_of_moment = np.append(time_ns[1:] != time_ns[:-1], True)
    kept = both & last_of_moment
    return Book(time_ns[kept], bid[kept], ask[kept], bid_size[kept], ask_size[kept])


def _carry_side(price: NDArray[Any], size: NDArray[Any]) -> tuple[Floats, Floats]:
    quoted = np.isfinite(price) & (price > 0)
    return (
        carry_forward(np.where(quoted, price, np.nan)),
        carry_forward(np.where(quoted, size.astype(np.float64), np.nan)),
    )
