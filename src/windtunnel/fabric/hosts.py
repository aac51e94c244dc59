"""Host lists inside files: one that does not parse leaves its names unknown, with a finding. Pure."""

from windtunnel.errors import ClusterError
from windtunnel.fabric.topology import Finding, place_of
from windtunnel.hostlist import expand_hostlist

_EVERY_NODE = "ALL"
ABSENT = frozenset({"", "(null)", "N/A", "n/a", "none", "NONE", "None"})


def read_hosts(text: str, findings: list[Finding], *, line: int | None, column: int | None = None) -> tuple[str, ...]:
    """Names of a host list; none, and a finding, where it is cut short or garbled."""
    names, problem = _expand(text)
    if problem:
        findings.append(Finding("warning", "unreadable-list", problem, line, column))
    return names


def read_record_hosts(
    text: str, offset: int, fields: dict[str, str], *, key: str, findings: list[Finding]
) -> tuple[str, ...]:
    """Names of a record's host list; the record begins at `offset` of the whole text."""
    value = fields.get(key, "")
    names, problem = _expand(value)
    if problem:  # only now, since to find a place is to count lines
        at = text.find(f"{key}={value}", offset)
        findings.append(Finding("warning", "unreadable-list", problem, *place_of(text, max(at, offset))))
    return names


def _expand(text: str) -> tuple[tuple[str, ...], str]:
    if text in ABSENT:
        return (), ""
    if text.upper() == _EVERY_NODE:
        return (), f"{text} stands for every node of slurm.conf: its names are unknown"
    try:
        return tuple(expand_hostlist(text)), ""
    except ClusterError as error:
        return (), f"{error}: its names are unknown"
