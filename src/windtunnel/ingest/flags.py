"""What is odd about a row that is kept: one bit each in its column `flags`. Nothing here drops or changes a row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.records.data import Column

Arrays = Mapping[str, NDArray[Any]]


class Flag(IntFlag):
    """Bits of the column `flags`; their numbers are part of the shards' format."""

    ONE_SIDED = 1
    """A quote without a bid or without an offer."""
    LOCKED = 2
    """The bid is the ask."""
    CROSSED = 4
    """The bid is above the ask."""
    ZERO = 8
    """A price, or a quoted side's size, of 0; or a quote of neither side."""
    OUT_OF_ORDER = 16
    """Earlier than the row before it in its file."""
    JUMP = 32
    """A price `JUMP_FACTOR` times or more above or below the last one known."""
    UNDEFINED = 64
    """A number that its publisher writes for none; it is NaN here."""
    REPEATED = 128
    """Equal in every column to the row before it in its file."""
    RECEIVED_BEFORE = 256
    """Received before it happened, by the clocks of both ends."""


NAMES: dict[Flag, str] = {flag: str(flag.name).lower() for flag in Flag}
FLAGS_COLUMN = Column("flags", "uint16", "bits: " + ", ".join(f"{flag.value} {name}" for flag, name in NAMES.items()))
JUMP_FACTOR = 50.0
"""Pence for pounds are 100 times, splits seldom more than 20."""
BIDS = ("bid_price", "bid", "bid_px", "best_bid", "best_bid_price", "bidprice")
ASKS = ("ask_price", "ask", "ask_px", "best_ask", "best_ask_price", "askprice", "offer")
BID_SIZES = ("bid_size", "bid_sz", "bid_qty", "best_bid_qty", "bidsize")
ASK_SIZES = ("ask_size", "ask_sz", "ask_qty", "best_ask_qty", "asksize")
PRICES = ("price", "close", "last", "px", "last_price", "adj_close")
OTHER_PRICES = ("open", "high", "low", "vwap")
NUMBERS = (*BIDS, *ASKS, *BID_SIZES, *ASK_SIZES, *PRICES, *OTHER_PRICES, "size", "volume", "qty")
"""Columns that are numbers by their name, whatever stands there."""
RECEIVED = "ts_recv"


@dataclass
class Flagger:
    """Flags rows batch after batch; it remembers the last row, so that batches are seen as one file."""

    _last_ns: int | None = None
    _last_prices: dict[str, float] = field(default_factory=dict)
    _last_row: dict[str, Any] = field(default_factory=dict)

    def flag(self, arrays: Arrays, undefined: NDArray[np.bool_] | None = None) -> NDArray[np.uint16]:
        """A value a row; `undefined` marks rows in which the source met a number for none."""
        flags = np.zeros(len(arrays["time_ns"]), dtype=np.uint16)
        if len(flags) == 0:
            return flags
        flag_quotes(flags, arrays)
        self._flag_order(flags, arrays["time_ns"])
        self._flag_jumps(flags, arrays)
        self._flag_repeats(flags, arrays)
        if undefined is not None:
            flags[undefined] |= np.uint16(Flag.UNDEFINED)
        if RECEIVED in arrays:
            flags[arrays[RECEIVED] < arrays["time_ns"]] |= np.uint16(Flag.RECEIVED_BEFORE)
        return flags

    def _flag_order(self, flags: NDArray[np.uint16], time_ns: NDArray[np.int64]) -> None:
        flags[1:][time_ns[1:] < time_ns[:-1]] |= np.uint16(Flag.OUT_OF_ORDER)
        if self._last_ns is not None and time_ns[0] < self._last_ns:
            flags[0] |= np.uint16(Flag.OUT_OF_ORDER)
        self._last_ns = int(time_ns[-1])

    def _flag_jumps(self, flags: NDArray[np.uint16], arrays: Arrays) -> None:
        for name in (*PRICES, *BIDS, *ASKS):
            if name not in arrays or arrays[name].dtype.kind not in "fiu":
                continue
            known = np.flatnonzero(arrays[name] > 0)
            if len(known) == 0:
                continue
            values = arrays[name][known]
            low, high = values.min(), values.max()
            last = self._last_prices.get(name, float(values[0]))
            self._last_prices[name] = float(values[-1])
            if max(high, last) < JUMP_FACTOR * min(low, last):
                continue
            before = np.concatenate([[last], values[:-1]])
            jumps = np.maximum(values, before) >= JUMP_FACTOR * np.minimum(values, before)
            flags[known[jumps]] |= np.uint16(Flag.JUMP)

    def _flag_repeats(self, flags: NDArray[np.uint16], arrays: Arrays) -> None:
        same = np.diff(arrays["time_ns"], prepend=arrays["time_ns"][0] - 1) == 0
        same[0] = bool(self._last_row) and all(_equal(self._last_row[name], arrays[name][0]) for name in arrays)
        # Only rows that could still be equal are compared: most differ in time or price already.
        places = np.flatnonzero(same[1:]) + 1
        for array in arrays.values():
            here, before = array[places], array[places - 1]
            equal = here == before
            if array.dtype.kind == "f":
                equal |= (here != here) & (before != before)
            places = places[equal]
        flags[places] |= np.uint16(Flag.REPEATED)
        if same[0]:
            flags[0] |= np.uint16(Flag.REPEATED)
        self._last_row = {name: array[-1] for name, array in arrays.items()}


def flag_quotes(flags: NDArray[np.uint16], arrays: Arrays) -> None:
    """Set the bits of quotes and of prices at 0, where there are such columns."""
    bid, ask = _find(arrays, BIDS), _find(arrays, ASKS)
    if bid is not None and ask is not None:
        has_bid, has_ask = bid > 0, ask > 0
        flags[has_bid ^ has_ask] |= np.uint16(Flag.ONE_SIDED)
        flags[~(has_bid | has_ask)] |= np.uint16(Flag.ZERO)
        both = np.flatnonzero(has_bid & has_ask)
        flags[both[bid[both] == ask[both]]] |= np.uint16(Flag.LOCKED)
        flags[both[bid[both] > ask[both]]] |= np.uint16(Flag.CROSSED)
        for has, size in ((has_bid, _find(arrays, BID_SIZES)), (has_ask, _find(arrays, ASK_SIZES))):
            if size is not None:
                flags[has & (size == 0)] |= np.uint16(Flag.ZERO)
    price = _find(arrays, PRICES)
    if price is not None:
        flags[price == 0] |= np.uint16(Flag.ZERO)


def count_flags(flags: NDArray[np.uint16]) -> dict[str, int]:
    """How many rows carry each flag, in the order of the bits; those of none are left out."""
    counted = np.bincount(flags, minlength=1)
    values = np.flatnonzero(counted)
    counts = {name: int(counted[values[(values & flag.value) != 0]].sum()) for flag, name in NAMES.items()}
    return {name: count for name, count in counts.items() if count}


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """All of them together, in the order of the bits."""
    found = list(counts)
    names = [name for name in NAMES.values() if any(name in each for each in found)]
    return {name: sum(each.get(name, 0) for each in found) for name in names}


def _find(arrays: Arrays, names: tuple[str, ...]) -> NDArray[Any] | None:
    return next((arrays[name] for name in names if name in arrays and arrays[name].dtype.kind in "fiu"), None)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))
