"""`nvidia-smi topo -m` and `nvidia-smi topo -p2p`: which devices there are, and the link between each two. Pure.

Grammar: a header of devices and of affinity titles, a row a device with one code a column and its affinities, a
legend, perhaps a legend that names NIC0 … by their devices. The tool parts cells by tabs; people paste them with
blanks. The number of columns says how many codes a row has; what follows them is taken apart by `nvidia_cells`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.fabric.machine import Device, Link, Machine, normal_code
from windtunnel.fabric.nvidia_cells import Title, find_titles, is_clipped, split_affinities
from windtunnel.fabric.topology import Finding, Kind, Topology

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GPU = re.compile(r"GPU\d+")
_DEVICE = re.compile(r"(?:GPU|NIC)\d+|[a-z][A-Za-z0-9_.-]*\d")
_CODE = re.compile(r"X|NV\d+|PIX|PXB|PHB|PSB|NODE|SYS|SOC|C2C|N/A")
_P2P_CODE = re.compile(r"X|OK|NS|CNS|GNS|TNS|PNS|DR|NSP|U|N/A")
_LEGEND = re.compile(r"^\s*(?:NIC )?Legend:?\s*$")
_NAMED_NIC = re.compile(r"^\s*(NIC\d+):\s*(\S+)\s*$")


@dataclass(frozen=True)
class Row:
    """A device's line: its codes, and where what follows them begins."""

    name: str
    codes: tuple[str, ...]
    line: str
    number: int
    rest_at: int


def is_matrix_header(line: str) -> bool:
    """Whether a line heads a matrix of devices, well-formed or with its columns run together."""
    words = _matrix_part(_ANSI.sub("", line)).split()
    return bool(words) and _GPU.match(words[0]) is not None and not any(_is_code(word) for word in words)


def parse_matrix(text: str) -> Topology:
    """Devices, links and affinities; what a cut or clipped table does not show is None."""
    lines = _ANSI.sub("", text).splitlines()
    start = next((index for index, line in enumerate(lines) if is_matrix_header(line)), None)
    if start is None:
        problem = Finding("error", "no-header", "no line names the columns GPU0 …", 1, 1)
        return Topology("nvidia-smi-topo", findings=(problem,))
    end = next((i for i in range(start, len(lines)) if _LEGEND.match(lines[i])), len(lines))
    findings: list[Finding] = []
    header = lines[start]
    columns = _read_columns(header, lines[start + 1 : end], start + 1, findings)
    rows = _read_rows(lines[start + 1 : end], start + 2, columns, findings)
    findings += _check(columns, rows, start + 1)
    if not any(finding.severity == "error" for finding in findings):
        findings += _find_cut(columns, rows, text, lines)
    aliases = {m[1]: m[2] for line in lines[end:] if (m := _NAMED_NIC.match(line)) is not None}
    titles = find_titles(header)
    machine = Machine(
        devices=_make_devices(columns, rows, titles, aliases, findings),
        links=tuple(
            Link(row.name, column, code) for row in rows for column, code in zip(columns, row.codes, strict=False)
        ),
        rows=tuple(row.name for row in rows),
        columns=tuple(title.name for title in titles),
    )
    return Topology(_kind_of(rows), records=len(rows), machine=machine, findings=tuple(findings))


def _is_code(word: str) -> bool:
    return _CODE.fullmatch(word) is not None or _P2P_CODE.fullmatch(word) is not None


def _matrix_part(header: str) -> str:
    titles = find_titles(header)
    return header[: titles[0].at] if titles else header


def _kind_of(rows: Sequence[Row]) -> Kind:
    codes = {code for row in rows for code in row.codes} - {"X", "N/A"}
    p2p = bool(codes) and all(_P2P_CODE.fullmatch(code) for code in codes)
    return "nvidia-smi-p2p" if p2p else "nvidia-smi-topo"


def _read_columns(header: str, below: Sequence[str], number: int, findings: list[Finding]) -> list[str]:
    words = _matrix_part(header).split()
    names = [line.split()[0] for line in below if line.split() and _DEVICE.fullmatch(line.split()[0])]
    columns = []
    for word in words:
        parts = [word] if word in names or _DEVICE.fullmatch(word) else _split_glued(word, names)
        if len(parts) > 1:
            text = f"columns run together in the header: {word[:40]!r}"
            findings.append(Finding("warning", "header-broken", text, number, header.index(word) + 1))
        columns += parts
    return columns


def _split_glued(word: str, names: Sequence[str]) -> list[str]:
    """Names run together, told apart by the rows' names; the word itself where they do not make it up."""
    options = "|".join(re.escape(name) for name in sorted(set(names), key=len, reverse=True))
    pattern = re.compile(f"{options}|GPU\\d+|NIC\\d+" if options else r"GPU\d+|NIC\d+")
    parts = pattern.findall(word)
    return parts if "".join(parts) == word else [word]


def _read_rows(lines: Sequence[str], first: int, columns: Sequence[str], findings: list[Finding]) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(lines, start=first):
        words = [(m[0], m.end()) for m in re.finditer(r"\S+", line)]
        if not words:
            continue
        name = words[0][0]
        known = name in columns or _DEVICE.fullmatch(name) is not None
        if not known or (len(words) > 1 and not _is_code(words[1][0])):
            findings.append(Finding("warning", "unread", f"not understood: {line.strip()[:60]!r}", number, 1))
            continue
        codes = []
        for word, _ in words[1 : 1 + len(columns)]:
            if not _is_code(word):
                break
            codes.append(word)
        rows.append(Row(name, tuple(codes), line, number, words[len(codes)][1]))
    return rows


def _check(columns: Sequence[str], rows: Sequence[Row], number: int) -> list[Finding]:
    """Whether rows and columns are of one matrix."""
    findings = []
    names = [row.name for row in rows]
    extra = [name for name in names if name not in columns]
    if any(_GPU.fullmatch(name) for name in extra):
        findings.append(Finding("error", "row-count", "more GPU rows than GPU columns", number, 1))
    elif extra:
        findings.append(Finding("error", "row-count", f"row {extra[0]} has no column", number, 1))
    for repeated in sorted({name for name in names if names.count(name) > 1}):
        findings.append(Finding("error", "repeated-row", f"row {repeated} is there twice", number, 1))
    wrong = [row for row in rows if _off_diagonal(row, columns)]
    if wrong:
        findings.append(Finding("error", "diagonal", "diagonal X not on the diagonal", wrong[0].number, 1))
    if len(set(columns)) != len(columns):
        findings.append(Finding("error", "repeated-column", "a column is there twice", number, 1))
    return findings


def _off_diagonal(row: Row, columns: Sequence[str]) -> bool:
    marks = [column for column, code in zip(columns, row.codes, strict=False) if code == "X"]
    reaches = row.name in columns and columns.index(row.name) < len(row.codes)
    return marks != ([row.name] if reaches else []) and row.name in columns


def _find_cut(columns: Sequence[str], rows: list[Row], text: str, lines: Sequence[str]) -> list[Finding]:
    """Rows that are missing or short; the end of the last row is doubtful then, and is taken back."""
    missing = [column for column in columns if column not in {row.name for row in rows}]
    short = [row for row in rows if len(row.codes) < len(columns)]
    findings = []
    if missing:
        findings.append(Finding("warning", "truncated", f"no row of {', '.join(missing)}: the table is cut short"))
    for row in short:
        text_of = f"row {row.name} has {len(row.codes)} of {len(columns)} codes"
        findings.append(Finding("warning", "truncated", text_of, row.number, 1))
    if rows and (missing or short) and _ends_text(rows[-1], lines):
        last = rows[-1]
        doubtful = last.codes and last.line.endswith(last.codes[-1]) and last.codes[-1].startswith("NV")
        codes = last.codes[:-1] if doubtful else last.codes
        rows[-1] = Row(last.name, codes, _without_last_cell(last), last.number, last.rest_at)
    return findings


def _ends_text(row: Row, lines: Sequence[str]) -> bool:
    return not any(line.strip() for line in lines[row.number :])


def _without_last_cell(row: Row) -> str:
    """The line without a cell that touches its end, since only a blank behind shows that it is whole."""
    if row.line[-1:].isspace() or row.line[row.rest_at :].strip() == "":
        return row.line
    cell = row.line.split()[-1]
    return row.line[: -len(cell)] + "?" * len(cell)


def _make_devices(
    columns: Sequence[str],
    rows: Sequence[Row],
    titles: Sequence[Title],
    aliases: dict[str, str],
    findings: list[Finding],
) -> tuple[Device, ...]:
    by_name = {row.name: row for row in rows}
    devices = []
    for name in dict.fromkeys([*columns, *by_name]):
        gpu = _GPU.fullmatch(name) is not None
        row = by_name.get(name)
        whole = row is not None and len(row.codes) == len(columns)
        cells = split_affinities(row.line, row.rest_at, titles, row.number, findings) if gpu and row and whole else {}
        if row is not None and is_clipped(cells.get("cpus")):
            text = f"the CPU affinity of {name}, {cells['cpus']}, is clipped: do not bind from it"
            findings.append(Finding("warning", "affinity-clipped", text, row.number, 1))
        devices.append(
            Device(
                name,
                "gpu" if gpu else "nic",
                cpus=cells.get("cpus"),
                numa=cells.get("numa"),
                memory_numa=cells.get("memory_numa"),
                alias=aliases.get(name),
            )
        )
    return tuple(devices)


def is_symmetric(machine: Machine) -> bool:
    """Whether every two rows agree on their link, as far as both are there."""
    codes = {(link.a, link.b): normal_code(link.code) for link in machine.links}
    return all(codes.get((b, a), code) == code for (a, b), code in codes.items())
