"""The JSON report of nccl-tests (its option -J): the same rows, with operation and ranks said outright. Pure."""

import json
import math
from typing import Any

from windtunnel.fabric.nccl_guess import find_ranks
from windtunnel.fabric.timings import Sample, TimingRow, Timings
from windtunnel.fabric.topology import Finding, Topology


def parse_nccl_json(text: str) -> Topology:
    """The report's rows; parts that are not as the program writes them are None."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        problem = Finding("error", "json", f"no JSON: {getattr(error, 'msg', error)}", line, column)
        return Topology("nccl-tests", findings=(problem,))
    results = _dict(document).get("results")
    found = results if isinstance(results, list) else []
    rows = tuple(row for item in found if (row := _read_row(_dict(item))) is not None)
    devices = _dict(_dict(document).get("config")).get("devices")
    average = _number(_dict(_dict(document).get("average_bus_bandwidth")).get("bandwidth"))
    operation = _find_operation(_dict(document))
    ranks = len(devices) if isinstance(devices, list) and devices else find_ranks(operation, rows)
    timings = Timings("nccl-tests", operation, ranks, rows, average, truncated=average is None)
    lost = len(found) - len(rows)
    warnings = (Finding("warning", "cut-row", f"{lost} results are not as nccl-tests writes them"),) if lost else ()
    return Topology("nccl-tests", timings=timings, records=len(rows), findings=warnings)


def _find_operation(document: dict[str, Any]) -> str | None:
    """From the command line that the report begins with."""
    args = document.get("args")
    words = args if isinstance(args, list) else str(args or "").split()
    names = [str(word).rpartition("/")[2].removesuffix(".exe") for word in words[:1]]
    return next((name.removesuffix("_perf") for name in names if name.endswith("_perf")), None)


def _read_row(item: dict[str, Any]) -> TimingRow | None:
    size = item.get("size")
    if not isinstance(size, int):
        return None
    root = str(item.get("root", "")).strip()
    redop = item.get("redop")
    count = item.get("count")
    return TimingRow(
        size,
        count=count if isinstance(count, int) else None,
        dtype=item.get("type") if isinstance(item.get("type"), str) else None,
        redop=redop if isinstance(redop, str) and redop != "none" else None,
        root=int(root) if root.lstrip("-").isdecimal() and len(root) < 10 else None,
        out_of_place=_read_sample(_dict(item.get("out_of_place"))),
        in_place=_read_sample(_dict(item.get("in_place"))),
    )


def _read_sample(item: dict[str, Any]) -> Sample | None:
    time_us = _number(item.get("time", item.get("cpu_time")))
    if time_us is None:
        return None
    wrong = item.get("nwrong")
    return Sample(
        time_us, _number(item.get("alg_bw")), _number(item.get("bus_bw")), "N/A" if wrong is None else str(wrong)
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
