"""Logs of nccl-tests, of every format since 2.0: header, rows, footer, amid whatever else the job printed. Pure.

A row is `size count type [redop] [root]`, then time, algbw, busbw and errors, out of place and in place. Older
programs have only the columns that their operation needs, and leave `redop` blank in alltoall. Source: nccl-tests'
src/common.cu and src/util.cu, and each program's header before version 2.13.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.fabric.nccl_guess import find_operation, find_ranks
from windtunnel.fabric.timings import Sample, TimingRow, Timings
from windtunnel.fabric.topology import Finding, Topology, unique

_PREFIX = re.compile(r"^(?:\[[^\]]*\d+,\d+\]<std(?:out|err)>:\s?|\s*[\w.-]+: (?=\s*[#\d]))")
_PROGRAM = re.compile(
    r"\b(all_reduce|all_gather|alltoallv?|broadcast|reduce_scatter|reduce|gather|scatter|sendrecv|hypercube)_perf\b"
)
_RANK = re.compile(r"^#\s+Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+\d+ on\s+(\S+)")
_AVERAGE = re.compile(r"^#?\s*Avg bus bandwidth\s*:\s*([-+.\deE]+)")
_VERSION = re.compile(r"^#\s*nccl-tests version (\S+)")
_ELLIPSIS = re.compile(r"^#?\s*(?:\.\.\.+|…)\s*$")
_CUT_RANKS = re.compile(r"^#.*\.\.\.\s*$")
_ROW = re.compile(r"^\s*(\d{1,18})\s+(\d{1,18})\s+([a-z][a-z0-9]*)\s+(.*?)\s*$")
_STAMP = re.compile(r"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_CELL = re.compile(r"[-+.\deE]+|N/A|nan|inf", re.IGNORECASE)
_PER_SAMPLE = 4
_PER_SAMPLE_WITH_ITERATIONS = 8


@dataclass(frozen=True)
class Columns:
    """Which of the optional columns a log has."""

    redop: bool
    root: bool
    iterations: bool
    """Whether each sample is followed by its spread over iterations."""


def parse_nccl_tests(text: str) -> Topology:
    """The log's rows, with operation and ranks where it says them or they follow from its numbers."""
    findings: list[Finding] = []
    lines = [_PREFIX.sub("", line) for line in text.splitlines()]
    columns = next((found for line in lines if (found := read_header(line)) is not None), None)
    if columns is None:
        findings.append(Finding("error", "no-header", "no line names the columns size, count, type …", 1, 1))
    rows = _read_rows(lines, columns or Columns(True, True, False), findings)
    average = next((m[1] for line in lines if (m := _AVERAGE.match(line)) is not None), None)
    named = {m[1] for line in lines for m in _PROGRAM.finditer(line)}
    listed = _count_listed(lines)
    operation = named.pop() if len(named) == 1 else find_operation(columns, rows, listed) if columns else None
    version = next((m[1] for line in lines if (m := _VERSION.match(line)) is not None), None)
    timings = Timings(
        "nccl-tests",
        operation=operation,
        ranks=listed if listed is not None else find_ranks(operation, rows),
        rows=tuple(rows),
        average_busbw=float(average) if average is not None and _NUMBER.fullmatch(average) else None,
        version=version,
        hosts=() if listed is None else unique(m[3] for line in lines if (m := _RANK.match(line)) is not None),
        truncated=average is None,
        elided=any(_ELLIPSIS.match(line) for line in lines),
    )
    if timings.truncated:
        findings.append(Finding("warning", "truncated", "the log ends before its average: rows may be missing"))
    return Topology("nccl-tests", timings=timings, records=len(rows), findings=tuple(findings))


def read_header(line: str) -> Columns | None:
    """The columns that a header line names; None for another line."""
    words = _PREFIX.sub("", line).lstrip("#").split()
    if words[:3] != ["size", "count", "type"] or "busbw" not in words:
        return None
    return Columns(redop="redop" in words, root="root" in words, iterations="i_min" in words)


def _read_rows(lines: Sequence[str], columns: Columns, findings: list[Finding]) -> list[TimingRow]:
    rows = []
    for number, line in enumerate(lines, start=1):
        match = _ROW.match(line)
        if match is None:
            continue
        row = _read_row(match, columns)
        if row is None:
            text = f"the row of size {match[1]} is cut short or garbled"
            findings.append(Finding("warning", "cut-row", text, number, 1))
        else:
            rows.append(row)
    return rows


def _read_row(match: re.Match[str], columns: Columns) -> TimingRow | None:
    cells = _STAMP.sub("", match[4]).split()
    width = _PER_SAMPLE_WITH_ITERATIONS if columns.iterations else _PER_SAMPLE
    wanted = 2 * width
    # A blank redop is left out, so what stands before the samples is told by how many cells are left.
    optional = columns.redop + columns.root
    head, tail = (cells[:-wanted], cells[-wanted:]) if len(cells) >= wanted else ([], [])
    if not tail or len(head) > optional or len(head) < columns.root:
        return None
    samples = [_read_sample(tail[start : start + _PER_SAMPLE]) for start in (0, width)]
    root = head[-1] if columns.root else None
    redop = head[0] if columns.redop and len(head) == optional else None
    if None in samples or (root is not None and not re.fullmatch(r"-?\d{1,9}", root)):
        return None
    return TimingRow(
        int(match[1]),
        count=int(match[2]),
        dtype=match[3],
        redop=None if redop == "none" else redop,
        root=int(root) if root is not None else None,
        out_of_place=samples[0],
        in_place=samples[1],
    )


def _read_sample(cells: Sequence[str]) -> Sample | None:
    if not all(_CELL.fullmatch(cell) for cell in cells) or not all(_NUMBER.fullmatch(c) for c in cells[:3]):
        return None
    time_us, algbw, busbw = map(float, cells[:3])
    return Sample(time_us, algbw, busbw, cells[3])


def _count_listed(lines: Sequence[str]) -> int | None:
    """Ranks of the list of devices; None where there is none, it was cut, or its groups differ in size."""
    groups: dict[str, set[int]] = {}
    for line in lines:
        match = _RANK.match(line)
        if (match or groups) and _CUT_RANKS.match(line) and not _ELLIPSIS.match(line):
            return None
        if match:
            groups.setdefault(match[2] or "0", set()).add(int(match[1][:9]))
    sizes = {len(ranks) for ranks in groups.values()}
    everyone = set().union(*groups.values())
    return sizes.pop() if len(sizes) == 1 and everyone == set(range(len(everyone))) else None
