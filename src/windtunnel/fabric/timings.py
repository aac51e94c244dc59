"""Timings of a communication benchmark, as its log gives them. Pure values."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Sample:
    """One measurement; bandwidths in the log's unit (GB/s of nccl-tests), `wrong` as printed (`0`, `N/A`)."""

    time_us: float
    algbw: float | None = None
    busbw: float | None = None
    wrong: str | None = None


@dataclass(frozen=True)
class TimingRow:
    """A message size. nccl-tests measures out of place and in place; other programs fill `values` by column."""

    size_bytes: int
    count: int | None = None
    dtype: str | None = None
    redop: str | None = None
    """None where the column is absent or blank."""
    root: int | None = None
    out_of_place: Sample | None = None
    in_place: Sample | None = None
    values: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Timings:
    """A log: what was run, by how many ranks, its rows. None is what it does not say."""

    program: Literal["nccl-tests", "osu"]
    operation: str | None
    ranks: int | None
    rows: tuple[TimingRow, ...]
    average_busbw: float | None = None
    version: str | None = None
    hosts: tuple[str, ...] = ()
    """Hosts of the ranks, each once; none where the log does not list them all."""
    truncated: bool = False
    """It ends before the program does."""
    elided: bool = False
    """Someone replaced rows by dots."""
