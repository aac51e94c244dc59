"""Windows over many shards and instruments as numbered samples. All series stand one behind the other in a row space.

A sample is named by its last input row t: a field shows rows t + begin to t + end - 1 of a column, such as the
window's rows before it and the horizon's rows behind. All of a sample's rows are of one instrument and one stretch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError, SettingsError
from windtunnel.records.data import ShardEntry

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """Rows t + `begin` to t + `end` - 1 of a column, for a sample whose last input row is t."""

    column: str
    begin: int
    end: int

    @property
    def rows(self) -> int:
        """Rows that it shows."""
        return self.end - self.begin


@dataclass(frozen=True)
class Series:
    """One instrument's shards in order of time: rows [first_row, end_row) of the row space."""

    instrument: str
    shards: tuple[ShardEntry, ...]
    first_row: int
    end_row: int


@dataclass(frozen=True, eq=False)
class Windows:
    """Samples 0 to n - 1: every `stride`-th row t of segments [first, first + (count - 1) * stride]."""

    first_rows: Rows
    counts: Rows
    stride: int = 1

    @property
    def samples(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def rows_of(self, samples: Rows) -> Rows:
        """The last input row of each sample."""
        starts = np.cumsum(self.counts) - self.counts
        segment = np.searchsorted(starts + self.counts, samples, "right")
        rows: Rows = self.first_rows[segment] + (samples - starts[segment]) * self.stride
        return rows

    def count_below(self, rows: Rows) -> Rows:
        """Samples whose last input row is below each of `rows`."""
        before = np.searchsorted(self.first_rows, rows, "left")
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        last = np.maximum(before - 1, 0)
        inside = -(-(rows - self.first_rows[last]) // self.stride)
        return np.where(before > 0, ends[last] + np.minimum(inside, self.counts[last]), 0)


def join_series(shards: Sequence[ShardEntry]) -> tuple[Series, ...]:
    """The series of each instrument, in order of their names; raises ArtifactError where shards overlap in time."""
    found: list[Series] = []
    row = 0
    for instrument in sorted({entry.instrument for entry in shards}):
        own = sorted((e for e in shards if e.instrument == instrument), key=lambda e: (e.first_ns, e.last_ns, e.file))
        for earlier, later in pairwise(own):
            if later.first_ns < earlier.last_ns:
                raise ArtifactError(
                    f"shards {earlier.file} and {later.file} of {instrument!r} overlap in time, so that their rows "
                    "have no order: take one out of data.files, or raise data.shard_text until its file is one shard"
                )
        end = row + sum(entry.rows for entry in own)
        found.append(Series(instrument, tuple(own), row, end))
        row = end
    return tuple(found)


def place_windows(stretches: Sequence[tuple[int, int]], fields: Sequence[Field], *, stride: int = 1) -> Windows:
    """Every sample whose rows, inputs and targets, lie inside one of the ascending `stretches` [first, end) of rows.

    Raises SettingsError when there is not a single one.
    """
    begin, end = min(field.begin for field in fields), max(field.end for field in fields)
    first_rows, counts = [], []
    for first_row, end_row in stretches:
        count = (end_row - first_row - (end - begin)) // stride + 1
        if count > 0:
            first_rows.append(first_row - begin)
            counts.append(count)
    if not counts:
        longest = max((end_row - first_row for first_row, end_row in stretches), default=0)
        raise SettingsError(
            f"a sample takes {end - begin} rows, the longest stretch has {longest}: use more data, a shorter window "
            "or horizon, or other fractions"
        )
    return Windows(np.array(first_rows, np.int64), np.array(counts, np.int64), stride)
