"""Where windows come from: columns held in memory, or chunks read from their shards each time."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from windtunnel.shards.chunks import ChunkStore, Form, Request
from windtunnel.shards.decoders import gather
from windtunnel.shards.windows import Field, Rows


class Source(Protocol):
    """Fills windows."""

    def form(self, column: str) -> Form:
        """What the column's rows are."""
        ...

    def fill(self, rows: Rows, outs: Mapping[Field, int], *, threads: int) -> None:
        """Write each field of the samples with last input rows `rows`, one after the other, to its address."""
        ...


class MemorySource:
    """Whole columns in memory, (rows, …) each, of the row space."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = {name: np.ascontiguousarray(column) for name, column in columns.items()}

    def form(self, column: str) -> Form:
        """What the column's rows are."""
        array = self._columns[column]
        return Form(array.dtype, array.shape[1:])

    def fill(self, rows: Rows, outs: Mapping[Field, int], *, threads: int) -> None:
        """Copy windows."""
        for field, out in outs.items():
            gather(self._columns[field.column], rows + field.begin, out, rows=field.rows, threads=threads)


class StreamSource:
    """Chunks of shards, of which nothing is kept; best with an order that takes whole chunks together."""

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def form(self, column: str) -> Form:
        """What the column's rows are."""
        return self._store.form(column)

    def fill(self, rows: Rows, outs: Mapping[Field, int], *, threads: int) -> None:
        """Read each chunk that a field touches once, and write its rows straight into their windows."""
        if len(rows) == 0:
            return
        slots = np.arange(len(rows))
        requests = [
            Request(field.column, rows + field.begin, np.full(len(rows), field.rows), slots * field.rows, out)
            for field, out in outs.items()
        ]
        self._store.read(requests, threads=threads)


def load_columns(store: ChunkStore, columns: Sequence[str], *, threads: int) -> MemorySource:
    """All rows of some columns of a store, read once."""
    return MemorySource({name: store.load(name, threads=threads) for name in columns})
