"""Logs of the OSU micro-benchmarks, point-to-point, one-sided and collective. Pure.

A log is `# OSU <title> v<version>`, perhaps more comments, a comment that names the columns, and a row a size. The
program follows from the title. Source: the benchmarks' own titles and headers, versions 5 to 7.
"""

import re
from collections.abc import Sequence

from windtunnel.fabric.timings import TimingRow, Timings
from windtunnel.fabric.topology import Finding, Topology

_TITLE = re.compile(r"^#?\s*OSU\s+(.*?)\s+v?(\d+(?:\.\d+)*)\s*$")
_COLUMNS = re.compile(r"^#\s*Size\b\s*(.*?)\s*$", re.IGNORECASE)
_ROW = re.compile(r"^\s*(\d{1,18})((?:\s+\S+)+)\s*$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FLAVOUR = re.compile(r"\b(?:MPI|OpenSHMEM|UPC\+\+|UPC|NCCL|Xccl)\b(?:-\S+)?|\bOne Sided\b", re.IGNORECASE)
_PROGRAMS = {
    "bi directional bandwidth": "osu_bibw",
    "bidirectional bandwidth": "osu_bibw",
    "multiple bandwidth / message rate": "osu_mbw_mr",
    "multi latency": "osu_multi_lat",
    "multi threaded latency": "osu_latency_mt",
    "multi process latency": "osu_latency_mp",
    "all to all personalized exchange": "osu_alltoall",
    "all to allv personalized exchange": "osu_alltoallv",
    "broadcast": "osu_bcast",
    "bandwidth": "osu_bw",
    "latency": "osu_latency",
    "init": "osu_init",
    "hello world": "osu_hello",
}
_COLLECTIVES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast", "gather",
    "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter", "scatterv",
)  # fmt: skip
_SMALL_BYTES = 8
"""Up to here a message takes the latency alone."""


def is_osu_title(line: str) -> bool:
    """Whether a line is a log's title."""
    return _TITLE.match(line) is not None and "test" in line.lower()


def parse_osu(text: str) -> Topology:
    """The first log of the text."""
    findings: list[Finding] = []
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if is_osu_title(line)), None)
    if start is None:
        return Topology("osu", findings=(Finding("error", "no-title", "no line `# OSU … Test v…`", 1, 1),))
    match = _TITLE.match(lines[start])
    assert match is not None
    end = next((i for i in range(start + 1, len(lines)) if is_osu_title(lines[i])), len(lines))
    if end < len(lines):
        findings.append(Finding("warning", "several", "the text has several logs: this is the first", end + 1, 1))
    operation = find_program(match[1])
    if operation is None:
        findings.append(Finding("warning", "unknown-title", f"{match[1]!r} is no title known here", start + 1, 1))
    rows = _read_rows(lines, start + 1, end, findings)
    timings = Timings("osu", operation, None, tuple(rows), version=match[2], truncated=not rows)
    return Topology("osu", timings=timings, records=len(rows), findings=tuple(findings))


def find_program(title: str) -> str | None:
    """The program of a title: `MPI Allreduce Latency Test` is osu_allreduce; None for one that is not known."""
    sided = re.search(r"MPI_(Put|Get(?:_accumulate)?|Accumulate|Compare_and_swap|Fetch_and_op)", title, re.IGNORECASE)
    words = _FLAVOUR.sub(" ", title.replace("MPI_", "")).lower()
    words = re.sub(r"\btest\b", " ", words)
    words = " ".join(re.sub(r"[-_]+", " ", words).split())
    if sided:
        short = {"get_accumulate": "get_acc", "accumulate": "acc", "compare_and_swap": "cas", "fetch_and_op": "fop"}
        name = sided[1].lower()
        kind = "bibw" if "bi directional" in words else "bw" if "bandwidth" in words else "latency"
        return f"osu_{short.get(name, name)}_{kind}"
    if words in _PROGRAMS:
        return _PROGRAMS[words]
    plain = words.removesuffix(" latency")
    if plain in _PROGRAMS:
        return _PROGRAMS[plain]
    name = plain.replace(" ", "_").removeprefix("non_blocking_")
    bare = name.removeprefix("i") if name.removeprefix("i") in _COLLECTIVES and name not in _COLLECTIVES else name
    return f"osu_{name}" if bare in _COLLECTIVES else None


def find_latency_us(timings: Timings) -> float | None:
    """Latency of an empty message, or of the smallest up to 8 bytes; None where no row shows it."""
    rows = [row for row in timings.rows if row.values and row.size_bytes <= _SMALL_BYTES]
    if not rows:
        return None
    name, value = min(rows, key=lambda row: row.size_bytes).values[0]
    return value if "latency" in name.lower() or "overall" in name.lower() else None


def _read_rows(lines: Sequence[str], start: int, end: int, findings: list[Finding]) -> list[TimingRow]:
    columns: list[str] = []
    rows = []
    for index in range(start, end):
        line = lines[index]
        if match := _COLUMNS.match(line):
            columns = _split_columns(match[1])
        elif match := _ROW.match(line):
            cells = match[2].split()
            numbers = [float(cell) for cell in cells if _NUMBER.fullmatch(cell)]
            if len(cells) != len(columns) or len(numbers) < min(len(cells), 1):
                text = f"the row of size {match[1]} has {len(cells)} values for {len(columns)} columns"
                findings.append(Finding("warning", "cut-row", text, index + 1, 1))
                continue
            named = zip(columns, cells, strict=True)
            values = tuple((name, float(cell)) for name, cell in named if _NUMBER.fullmatch(cell))
            rows.append(TimingRow(int(match[1]), values=values))
    return rows


def _split_columns(text: str) -> list[str]:
    """Titles, which hold single blanks and are parted by several, or by the unit that ends one."""
    parts = re.split(r"\s{2,}|\t+|(?<=\))\s+", text)
    return [part.strip() for part in parts if part.strip()]
