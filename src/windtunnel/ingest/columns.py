"""Batches to the arrays of a shard: each column in its own dtype, codes as fixed bytes, oddities as flags."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windtunnel.ingest.flags import FLAGS_COLUMN, Flagger, count_flags
from windtunnel.ingest.rows import join_rejected
from windtunnel.ingest.sources.base import UNDEFINED, Batch
from windtunnel.records.data import Column


@dataclass(frozen=True)
class PieceRows:
    """A whole piece: its rows in order of time, and what did not fit."""

    arrays: dict[str, NDArray[Any]]
    """Empty arrays where no row was kept."""
    rows_in: int
    lines: int
    rejected: pl.DataFrame
    flagged: dict[str, int]


def join_batches(batches: Iterable[Batch], columns: Sequence[Column]) -> PieceRows:
    """The batches of one piece as one; rows of equal time keep the file's order."""
    flagger = Flagger()
    parts, rejected, rows_in, lines = [], [], 0, 0
    for batch in batches:
        arrays = make_arrays(batch.frame, columns)
        undefined = batch.frame[UNDEFINED].to_numpy() if UNDEFINED in batch.frame.columns else None
        parts.append({**arrays, FLAGS_COLUMN.name: flagger.flag(arrays, undefined)})
        rejected.append(batch.rejected)
        rows_in += batch.rows_in
        lines += batch.lines
    joined = {
        name: parts[0][name] if len(parts) == 1 else np.concatenate([part[name] for part in parts])
        for name in (parts[0] if parts else ())
    }
    flagged = count_flags(joined[FLAGS_COLUMN.name]) if joined else {}
    return PieceRows(_sort_by_time(joined), rows_in, lines, join_rejected(rejected), flagged)


def make_arrays(frame: pl.DataFrame, columns: Sequence[Column]) -> dict[str, NDArray[Any]]:
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


def _sort_by_time(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    time_ns = arrays.get("time_ns", np.empty(0, dtype=np.int64))
    if bool(np.all(time_ns[1:] >= time_ns[:-1])):
        return arrays
    order = np.argsort(time_ns, kind="stable")
    return {name: array[order] for name, array in arrays.items()}
