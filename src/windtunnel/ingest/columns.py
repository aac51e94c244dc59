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
    """A whole piece, but for the rows that were kept: how many there were, and what did not fit."""

    kept: int
    rows_in: int
    lines: int
    rejected: pl.DataFrame
    flagged: dict[str, int]


def read_piece(batches: Iterable[Batch], columns: Sequence[Column], take: Callable[[Arrays], None]) -> PieceRows:
    """Give the rows of one piece to `take`, part after part in the file's order, each part with its flags."""
    flagger = Flagger()
    kept = rows_in = lines = 0
    flagged, rejected = [], []
    for batch in batches:
        arrays = make_arrays(batch.frame, columns)
        undefined = batch.frame[UNDEFINED].to_numpy() if UNDEFINED in batch.frame.columns else None
        flags = flagger.flag(arrays, undefined)
        if len(flags):
            flagged.append(count_flags(flags))
            take({**arrays, FLAGS_COLUMN.name: flags})
        kept += len(flags)
        rejected.append(batch.rejected)
        rows_in += batch.rows_in
        lines += batch.lines
    return PieceRows(kept, rows_in, lines, join_rejected(rejected), add_counts(flagged))


def sort_rows(parts: Sequence[Arrays]) -> Arrays:
    """All rows in order of time; those of equal time keep their order. Nothing where there are no parts."""
    if not parts:
        return {}
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["time_ns"], kind="stable")
    return {name: array[order] for name, array in joined.items()}


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
