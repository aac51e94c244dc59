"""Batches to the arrays of a shard: each column in its own dtype, codes as fixed bytes, oddities as flags."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windtunnel.ingest.flags import FLAGS_COLUMN, Flagger, add_counts, count_flags
from windtunnel.ingest.rows import join_rejected
from windtunnel.ingest.sources.base import UNDEFINED, Batch
from windtunnel.records.data import Column

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PieceRows:
    """A whole piece: its rows in the file's order, in parts, and what did not fit."""

    parts: tuple[Arrays, ...]
    rows_in: int
    lines: int
    rejected: pl.DataFrame
    flagged: dict[str, int]

    @property
    def kept(self) -> int:
        """Rows that did fit."""
        return sum(len(part["time_ns"]) for part in self.parts)

    def join(self) -> Arrays:
        """All rows in order of time; those of equal time keep the file's order. Nothing where no row was kept."""
        if not self.parts:
            return {}
        joined = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        return _sort_by_time(joined)


def read_piece(
    batches: Iterable[Batch], columns: Sequence[Column], *, tell: Callable[[Arrays], None] | None = None
) -> PieceRows:
    """The batches of one piece, flagged; `tell` is called with each part as soon as it is there."""
    flagger = Flagger()
    parts, rejected, rows_in, lines = [], [], 0, 0
    flagged: list[dict[str, int]] = []
    for batch in batches:
        arrays = make_arrays(batch.frame, columns)
        undefined = batch.frame[UNDEFINED].to_numpy() if UNDEFINED in batch.frame.columns else None
        flags = flagger.flag(arrays, undefined)
        if len(flags):
            parts.append({**arrays, FLAGS_COLUMN.name: flags})
            flagged.append(count_flags(flags))
            if tell is not None:
                tell(parts[-1])
        rejected.append(batch.rejected)
        rows_in += batch.rows_in
        lines += batch.lines
    return PieceRows(tuple(parts), rows_in, lines, join_rejected(rejected), add_counts(flagged))


def make_arrays(frame: pl.DataFrame, columns: Sequence[Column]) -> Arrays:
    """One array a column, in the column's dtype."""
    return {column.name: _make_array(frame[column.name], column.dtype) for column in columns}


def map_codes(codes: pl.Series, convert: Callable[[str], Any], dtype: str) -> NDArray[Any]:
    """`convert` applied once to each distinct code of a categorical column."""
    physical = codes.to_physical().to_numpy()
    distinct = codes.unique()
    table = np.zeros(int(physical.max()) + 1 if len(physical) else 0, dtype=dtype)
    for number, code in zip(distinct.to_physical(), distinct, strict=True):
        table[number] = convert(code)
    return np.take(table, physical)


def _make_array(values: pl.Series, dtype: str) -> NDArray[Any]:
    if dtype.startswith("S"):
        return map_codes(values, lambda code: code.encode(), dtype)
    return values.to_numpy().astype(dtype, copy=False)


def _sort_by_time(arrays: Arrays) -> Arrays:
    time_ns = arrays["time_ns"]
    if bool(np.all(time_ns[1:] >= time_ns[:-1])):
        return arrays
    order = np.argsort(time_ns, kind="stable")
    return {name: array[order] for name, array in arrays.items()}
