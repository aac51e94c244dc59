"""`sinfo` by node or by partition, with or without its header. Pure.

With a header the columns are known by title, and cells that fill their width by the title's place. Without one
(`-h`) a cell is known by its form alone: the first is a node, one word is a state, and strings of resources are Gres,
then GresUsed. Source: Slurm's sinfo(1), its titles from src/sinfo/print.c.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from windtunnel.fabric.hosts import read_hosts
from windtunnel.fabric.topology import Finding, Host, Topology
from windtunnel.gres import parse_gres

_TITLES = {
    "NODELIST": "hosts",
    "HOSTNAMES": "hosts",
    "NODE_ADDR": "address",
    "GRES": "gres",
    "GRES_USED": "gres_used",
    "STATE": "state",
    "STATECOMPACT": "state",
    "CPUS": "cpus",
    "SOCKETS": "sockets",
    "CORES": "cores_per_socket",
    "THREADS": "threads_per_core",
    "WEIGHT": "weight",
    "AVAIL_FEATURES": "features",
    "ACTIVE_FEATURES": "features",
    "S:C:T": "sct",
}
_OTHER_TITLES = frozenset(
    {
        *("AVAIL", "TIMELIMIT", "NODES", "PARTITION", "MEMORY", "FREE_MEM", "TMP_DISK", "CPU_LOAD", "REASON", "USER"),
        *("NODES(A/I)", "NODES(A/I/O/T)", "CPUS(A/I/O/T)", "JOB_SIZE", "ROOT", "OVERSUBS", "GROUPS", "DEFAULTTIME"),
        *("PREEMPT_MODE", "PRIO_JOB_FACTOR", "PRIO_TIER", "PRIORITY", "TIMESTAMP", "VERSION", "ALLOCMEM", "PORT"),
        *("ALLOCNODES", "CLUSTER", "COMMENT", "EXTRA", "MAX_CPUS_PER_NODE", "MAXCPUSPERNODE", "STATECOMPLETE"),
    }
)
_STATE = re.compile(
    r"(?:alloc|allocated|comp|completing|down|drain|drained|draining|drng|fail|failg|failing|futr|future|idle|inval|"
    r"maint|mix|mixed|no_respond|npc|perfctrs|plnd|planned|pow_dn|pow_up|power_\w+|powering_\w+|powered_down|powerdown|"
    r"reboot\w*|block|blocked|resv|reserved|unk|unknown|unkn|error)[*~#!%$@^+-]*",
    re.IGNORECASE,
)
_GRES = re.compile(
    r"(?:gres[/:])?(?:gpu|shard|mps|mic|nic|tmpfs|tmpdisk|lscratch|craynetwork|license|bandwidth)(?:[:(,].*)?"
)
_NULL = "(null)"


def is_header(line: str) -> bool:
    """Whether a line is a row of sinfo's titles."""
    words = _split(line)
    known = [word for word in words if word in _TITLES or word in _OTHER_TITLES]
    return len(words) > 1 and len(known) == len(words) and any(_TITLES.get(word) == "hosts" for word in words)


def is_row(line: str) -> bool:
    """Whether a line without a header looks like sinfo's by node: a name, then a state or resources."""
    cells = _split(line)
    return len(cells) >= 2 and any(_STATE.fullmatch(c) for c in cells[1:]) and "=" not in line and ":" not in cells[0]


def parse_sinfo(text: str) -> Topology:
    """Each node once, whatever the number of its partitions."""
    findings: list[Finding] = []
    hosts: dict[str, Host] = {}
    titles: list[tuple[str, int]] = []
    rows = 0
    repeated: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if is_header(line):
            titles = [(match[0], match.start()) for match in re.finditer(r"[^\s|]+", line)]
            continue
        rows += 1
        cells = _cells_by_title(line, titles) if titles else _cells_by_form(line, number, findings)
        for name in read_hosts(cells.get("hosts", ""), findings, line=number, column=1):
            if name in hosts:
                repeated[name] = None
            hosts.setdefault(name, _read_host(name, cells))
    findings += [Finding("warning", "repeated", f"{name} has several rows") for name in repeated]
    return Topology("sinfo", hosts=tuple(hosts.values()), records=rows, findings=tuple(findings))


def _cells_by_title(line: str, titles: Sequence[tuple[str, int]]) -> dict[str, str]:
    words = _split(line)
    if len(words) != len(titles):
        ends = [start for _, start in titles[1:]] + [len(line)]
        words = [line[start:end].strip() for (_, start), end in zip(titles, ends, strict=True)]
    return {_TITLES[title]: word for (title, _), word in zip(titles, words, strict=True) if title in _TITLES}


def _cells_by_form(line: str, number: int, findings: list[Finding]) -> dict[str, str]:
    first, *rest = _split(line)
    cells = {"hosts": first}
    resources = []
    for cell in rest:
        if _GRES.fullmatch(cell) or cell == _NULL:
            resources.append(cell)
        elif "state" not in cells and _STATE.fullmatch(cell):
            cells["state"] = cell
    cells |= dict(zip(("gres", "gres_used"), resources, strict=False))
    if len(resources) == 1:
        findings.append(Finding("warning", "missing-cell", f"{first}: one of Gres and GresUsed is absent", number, 1))
    return cells


def _read_host(name: str, cells: Mapping[str, str]) -> Host:
    host = Host(
        name,
        cpus=_count(cells.get("cpus")),
        sockets=_count(cells.get("sockets")),
        cores_per_socket=_count(cells.get("cores_per_socket")),
        threads_per_core=_count(cells.get("threads_per_core")),
        gres_text=cells.get("gres"),
        gres=parse_gres(cells["gres"]) if cells.get("gres") else None,
        gres_used=parse_gres(cells["gres_used"]) if cells.get("gres_used") else None,
        state=cells.get("state") or None,
        weight=_count(cells.get("weight")),
    )
    parts = [_count(part) for part in cells.get("sct", "").split(":")]
    if len(parts) == 3:
        host = replace(host, sockets=parts[0], cores_per_socket=parts[1], threads_per_core=parts[2])
    return host


def _split(line: str) -> list[str]:
    """Cells, which people also have parted by bars (`-o "%N|%G"`)."""
    return [cell.strip() for cell in line.split("|")] if "|" in line else line.split()


def _count(text: str | None) -> int | None:
    # `8+` is the least of several nodes in one row, not this one's.
    return int(text[:18]) if text is not None and text.isdecimal() else None
