"""What a source is: it says what texts a raw file holds, and yields their rows in batches of typed columns.

A long text is read in pieces, each of a fixed number of bytes and each one shard, so that several ranks may read one
file, none needs it whole, and the shards are the same however many do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from windtunnel.ingest.files import RawFile
from windtunnel.ingest.rows import no_rejected
from windtunnel.ingest.unpack import Member
from windtunnel.records.data import Column

TIME_COLUMN = Column("time_ns", "int64", "ns since 1970 UTC")
UNDEFINED = "#undefined"
"""A column of batches: whether the row has a number that its publisher writes for none."""


@dataclass(frozen=True)
class Part:
    """One text of a raw file, which becomes the shards of one instrument, named `stem`."""

    instrument: str
    stem: str
    member: Member
    pieces: int | None = 1
    """How many; None where only reading tells."""
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    """What is odd about the text as a whole, as far as its beginning tells."""
    detail: Any = None
    """What the source found out about the text, for itself."""


@dataclass(frozen=True)
class Run:
    """Pieces `first` to `end` - 1 of a part, to the last where `end` is None; a piece has `piece_bytes` of text."""

    first: int = 0
    end: int | None = None
    piece_bytes: int = 64 << 20
    max_rows: int | None = None
    """At most so many rows of the text, for a run from piece 0 on."""


@dataclass(frozen=True)
class Batch:
    """Rows of one piece, in the file's order, and those that did not fit; rows in = kept + rejected."""

    frame: pl.DataFrame
    """The part's columns by name, and perhaps `UNDEFINED`; codes are categorical."""
    rows_in: int
    rejected: pl.DataFrame = field(default_factory=no_rejected)
    """As in `ingest.rows`, with lines counted from the first of the piece."""
    lines: int = 0
    """Of the text that the batch is from."""
    piece: int = 0


class Source(Protocol):
    """One raw format. Both methods raise InputFileError for a file that is not of it; they never guess."""

    def identify(self, raw: RawFile) -> tuple[Part, ...]:
        """What `raw` holds; reads no more than the beginning of each text."""
        ...

    def read(self, raw: RawFile, part: Part, run: Run) -> Iterator[Batch]:
        """The rows of a run in order, some for each piece of it that has any line."""
        ...


def count_pieces(member: Member, piece_bytes: int) -> int | None:
    """Pieces of a text, where its size is known before it is read."""
    return None if member.bytes is None else max(1, -(-member.bytes // piece_bytes))
