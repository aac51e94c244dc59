"""SLURM_TOPOLOGY_ADDR of several nodes, gathered by one srun: each node sees only its own. Pure.

A line is `[label] ADDRESS PATTERN`, perhaps behind `N: ` of `srun --label`, or the two variables as of `env`.
The address has one component for each of the pattern's, such as `spine.leaf0.n4` and `switch.switch.node`; a level of
several parents is their host list. Names may hold dots: then the components cannot be told apart, unless the label is
the node's own name. Source: Slurm's srun(1) and `topology_p_get_node_addr`.
"""

import re
from collections.abc import Iterator

from windtunnel.fabric.hosts import read_hosts
from windtunnel.fabric.topology import Finding, Host, Topology, unique

_PATTERN = re.compile(r"(?:(?:switch|block)\.)*node")
_VARIABLE = re.compile(r"(?:^|\s)SLURM_TOPOLOGY_ADDR(_PATTERN)?=(\S*)")
_NAME = re.compile(r"(?:^|\s)SLURMD_NODENAME=(\S+)")
_LABEL = re.compile(r"^\s*(\d+):\s")
_DOT_OUTSIDE_BRACKETS = re.compile(r"\.(?![^\[]*\])")


def is_pattern(word: str) -> bool:
    """Whether a word is a pattern of an address."""
    return _PATTERN.fullmatch(word) is not None


def parse_addresses(text: str) -> Topology:
    """A host a node, with its path of switches or blocks; None for a path that cannot be told."""
    findings: list[Finding] = []
    hosts: dict[str, Host] = {}
    patterns = []
    count = 0
    for line, label, address, pattern in _find_addresses(text):
        count += 1
        patterns.append(pattern)
        host = _read_address(address, pattern, label, findings, line)
        if host is not None:
            hosts.setdefault(host.name, host)
    plugin = "block" if any("block" in p for p in patterns) else "tree" if any("." in p for p in patterns) else None
    return Topology(
        "topology-address", plugin=plugin, hosts=tuple(hosts.values()), records=count, findings=tuple(findings)
    )


def list_parents(topology: Topology) -> tuple[str, ...]:
    """Switches of the highest level that the addresses name, each once."""
    findings: list[Finding] = []
    tops = [read_hosts(host.path[0], findings, line=None) for host in topology.hosts if host.path]
    return unique(name for names in tops for name in names)


def _find_addresses(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, label, address and pattern of each node."""
    held: dict[str, tuple[str, str]] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        match = _LABEL.match(raw)
        rank, line = (match[1], raw[match.end() :]) if match else ("", raw)
        name, address = held.pop(rank, ("", ""))
        if named := _NAME.search(line):
            name = named[1]
        found = {bool(m[1]): m[2] for m in _VARIABLE.finditer(line)}
        if found or address or named:
            address, pattern = found.get(False, address), found.get(True)
            if pattern is not None and address:
                yield number, name, address, pattern
            else:
                held[rank] = (name, address)
            continue
        words = line.split()
        if 2 <= len(words) <= 3 and is_pattern(words[-1]):
            yield number, words[0] if len(words) == 3 else rank, words[-2], words[-1]


def _read_address(address: str, pattern: str, label: str, findings: list[Finding], line: int) -> Host | None:
    parts = _DOT_OUTSIDE_BRACKETS.split(address)
    wanted = pattern.count(".") + 1
    if len(parts) == wanted:
        return Host(parts[-1], path=tuple(parts[:-1]))
    if label and address.endswith(f".{label}"):
        above = _DOT_OUTSIDE_BRACKETS.split(address.removesuffix(f".{label}"))
        if len(above) == wanted - 1:
            return Host(label, path=tuple(above))
    text = f"{address} has {len(parts)} parts, but its pattern {pattern} {wanted}: a name holds dots"
    if label and address.endswith(f".{label}"):
        findings.append(Finding("warning", "dotted-names", f"{text}; the path of {label} is unknown", line, 1))
        return Host(label)
    findings.append(Finding("warning", "dotted-names", f"{text}; node and path are unknown", line, 1))
    return None
