"""The columns of Lean's equity ticks: text to typed columns, with rows that do not fit set aside.

Text that fits whole takes polars' own CSV reader; anything else is taken row by row, with the same result.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windtunnel.ingest.columns import map_codes
from windtunnel.ingest.files import count_lines
from windtunnel.ingest.rows import (
    LINE,
    RAW,
    join_rejected,
    no_rejected,
    not_decimal,
    not_whole,
    outside,
    reject,
    split_fields,
    split_lines,
)
from windtunnel.ingest.sources.base import TIME_COLUMN
from windtunnel.records.data import Column

PRICE_SCALE = 10_000.0
_DAY_MS = 86_400_000
_MS = "ms"
_PRICE_BOUND = 1e14
_SIZE_BOUND = 2**31  # half the bytes of 64 bits, and a fifth of the shard's
_EXCHANGE = re.compile(r"[A-Za-z0-9_.-]{0,8}")
_CONDITION = re.compile(r"[0-9A-Fa-f]{0,8}")
_TAIL = (
    Column("exchange", "S8", "code"),
    Column("condition", "uint32", "flags, hexadecimal in the file"),
    Column("suspicious", "uint8", "1 where the publisher doubts the tick"),
)


@dataclass(frozen=True)
class Layout:
    """One kind of tick: its fields in the file's order, and the columns they become."""

    kind: str
    prices: tuple[str, ...]
    sizes: tuple[str, ...]
    fields: tuple[str, ...]
    least_price: float
    """Lowest price in the file's own units."""
    columns: tuple[Column, ...]

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Each number's lowest value, and the first one too high."""
        return {
            _MS: (0, _DAY_MS),
            **dict.fromkeys(self.prices, (self.least_price, _PRICE_BOUND)),
            **dict.fromkeys(self.sizes, (0, _SIZE_BOUND)),
            "suspicious": (0, 2),
        }


QUOTE = Layout(
    kind="quote",
    prices=("bid_price", "ask_price"),
    sizes=("bid_size", "ask_size"),
    fields=(_MS, "bid_price", "bid_size", "ask_price", "ask_size", "exchange", "condition", "suspicious"),
    least_price=0,
    columns=(
        TIME_COLUMN,
        Column("bid_price", "float64", "USD; NaN in a quote without a bid"),
        Column("bid_size", "int32", "shares"),
        Column("ask_price", "float64", "USD; NaN in a quote without an offer"),
        Column("ask_size", "int32", "shares"),
        *_TAIL,
    ),
)
TRADE = Layout(
    kind="trade",
    prices=("price",),
    sizes=("size",),
    fields=(_MS, "price", "size", "exchange", "condition", "suspicious"),
    least_price=1e-4,
    columns=(TIME_COLUMN, Column("price", "float64", "USD"), Column("size", "int32", "shares"), *_TAIL),
)


@dataclass(frozen=True)
class Ticks:
    """Rows that fit, as fields of the layout, in the file's order."""

    frame: pl.DataFrame
    rows_in: int
    rejected: pl.DataFrame


def parse_ticks(text: bytes, layout: Layout, *, first_line: int = 1) -> Ticks:
    """Rows of `text` that fit `layout`, and the others with reasons; the first is line `first_line` of the file."""
    frame = _parse_whole(text, layout)
    if frame is None:
        return _parse_by_row(text, layout, first_line)
    return Ticks(frame, len(frame), no_rejected())


def _parse_whole(text: bytes, layout: Layout) -> pl.DataFrame | None:
    """All rows at once, or None when any line does not fit: another count of fields, a blank, a wrong value."""
    kinds: dict[str, Any] = dict.fromkeys((_MS, *layout.sizes), pl.Int32) | dict.fromkeys(layout.prices, pl.Int64)
    kinds |= {"exchange": pl.Categorical, "condition": pl.Categorical, "suspicious": pl.UInt8}
    schema = {name: kinds[name] for name in layout.fields}
    try:
        frame = pl.read_csv(text, has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        return None
    if len(frame) != count_lines(text) or any(column.null_count() for column in frame):
        return None
    numbers = frame.select(layout.bounds.keys())
    extremes = zip(layout.bounds.values(), numbers.min().row(0), numbers.max().row(0), strict=True)
    fits = all(low <= least and most < high for (low, high), least, most in extremes)
    fits = fits and all(_EXCHANGE.fullmatch(code) for code in frame["exchange"].unique())
    fits = fits and all(_CONDITION.fullmatch(code) for code in frame["condition"].unique())
    return frame if fits else None


def _parse_by_row(text: bytes, layout: Layout, first_line: int) -> Ticks:
    rows = split_lines(text, first_line=first_line)
    split, wrong_count = split_fields(rows, layout.fields, delimiter=",", quotes=False)
    reasons = [not_decimal(name) for name in (_MS, *layout.prices)]
    reasons += [not_whole(name) for name in (*layout.sizes, "suspicious")]
    reasons += [
        pl.when(~pl.col("exchange").str.contains(f"^{_EXCHANGE.pattern}$")).then(
            pl.format("exchange is not a code of up to 8 characters: {}", pl.col("exchange"))
        ),
        pl.when(~pl.col("condition").str.contains(f"^{_CONDITION.pattern}$")).then(
            pl.format("condition is not hexadecimal of up to 8 digits: {}", pl.col("condition"))
        ),
    ]
    read, unread = reject(split, reasons)
    typed = read.with_columns(
        pl.col(_MS, *layout.prices).cast(pl.Float64),
        pl.col(*layout.sizes, "suspicious").cast(pl.Int64),
        pl.col("exchange", "condition").cast(pl.Categorical),
    )
    kept, unlikely = reject(typed, outside(layout.bounds))
    return Ticks(kept.drop(LINE, RAW), len(rows), join_rejected([wrong_count, unread, unlikely]))


def make_frame(frame: pl.DataFrame, layout: Layout, *, midnight_ns: int) -> pl.DataFrame:
    """Columns of the shard in the layout's order; a price of 0 is Lean's sign for an absent side."""
    since_ns = pl.Series(_to_ns(frame[_MS].to_numpy()))
    amounts = layout.fields[1 : 1 + len(layout.prices) + len(layout.sizes)]
    return frame.select(
        (since_ns + midnight_ns).alias(TIME_COLUMN.name),
        *(
            pl.Series(name, _scale_prices(frame[name])) if name in layout.prices else pl.col(name).cast(pl.Int32)
            for name in amounts
        ),
        "exchange",
        pl.Series("condition", map_codes(frame["condition"], lambda code: int(code or "0", 16), "uint32")),
        pl.col("suspicious").cast(pl.UInt8),
    )


def _scale_prices(prices: pl.Series) -> NDArray[np.float64]:
    """USD; a price of 0 is Lean's sign for an absent side."""
    # A quotient rounds once, so that 475000 gives the float 47.5 exactly; polars multiplies by the reciprocal.
    scaled = prices.to_numpy() / PRICE_SCALE
    scaled[scaled == 0] = np.nan
    return scaled


def _to_ns(since_ms: NDArray[Any]) -> NDArray[np.int64]:
    """Whole nanoseconds; the file's milliseconds may have a fraction."""
    if since_ms.dtype.kind == "i":
        return since_ms * np.int64(1_000_000)
    return np.rint(since_ms * 1e6).astype(np.int64)
