"""Facts of the logs of communication benchmarks. Pure."""

from collections.abc import Callable
from typing import Any

from windtunnel.fabric.osu import find_latency_us
from windtunnel.fabric.timings import TimingRow, Timings
from windtunnel.fabric.topology import Topology


def collect_nccl_facts(topology: Topology) -> dict[str, Any]:
    """Facts of a log of nccl-tests."""
    timings = topology.timings or Timings("nccl-tests", None, None, (), truncated=True)
    return {
        "op": timings.operation,
        "n_ranks": timings.ranks,
        "n_nodes": len(timings.hosts) or None,
        **_collect_sizes(timings.rows),
        "zero_size_rows": sum(row.size_bytes == 0 for row in timings.rows),
        "avg_busbw": timings.average_busbw,
        "truncated": timings.truncated,
        "elided": timings.elided,
        "out_of_place_wrong": _one(
            timings.rows, lambda row: None if row.out_of_place is None else row.out_of_place.wrong
        ),
        "in_place_wrong": _one(timings.rows, lambda row: None if row.in_place is None else row.in_place.wrong),
        "program_version": timings.version,
    }


def collect_osu_facts(topology: Topology) -> dict[str, Any]:
    """Facts of a log of the OSU micro-benchmarks."""
    timings = topology.timings or Timings("osu", None, None, (), truncated=True)
    return {
        "benchmark": timings.operation,
        "program_version": timings.version,
        **_collect_sizes(timings.rows),
        "columns": [name for name, _ in timings.rows[0].values] if timings.rows else [],
        "alpha_us": find_latency_us(timings),
    }


def _collect_sizes(rows: tuple[TimingRow, ...]) -> dict[str, Any]:
    sizes = [row.size_bytes for row in rows]
    return {"rows": len(rows), "min_bytes": min(sizes, default=None), "max_bytes": max(sizes, default=None)}


def _one(rows: tuple[TimingRow, ...], value: Callable[[TimingRow], str | None]) -> str | list[str] | None:
    """What all rows say, or the different things that they say."""
    values = sorted({found for row in rows if (found := value(row)) is not None})
    return values[0] if len(values) == 1 else values or None
