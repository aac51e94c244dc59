"""Nodes of a slurm.conf: the cluster that a topology is held against. Pure.

Lines `NodeName=<list> Key=Value …`; a line `NodeName=DEFAULT` gives values to those after it. Source: Slurm's
slurm.conf(5).
"""

import re

from windtunnel.fabric.hosts import read_hosts
from windtunnel.fabric.topology import Finding, Host, Topology
from windtunnel.gres import parse_gres

_NODE = re.compile(r"^\s*NodeName\s*=\s*(\S+)(.*)$", re.IGNORECASE)
_PAIR = re.compile(r"(\w+)\s*=\s*(\"[^\"]*\"|\S+)")


def parse_slurm_config(text: str) -> Topology:
    """Hosts of a slurm.conf; Include lines are not followed, and a finding says so."""
    findings: list[Finding] = []
    hosts: dict[str, Host] = {}
    defaults: dict[str, str] = {}
    joined = re.sub(r"\\\n", " ", text)
    for number, raw in enumerate(joined.splitlines(), start=1):
        line = raw.partition("#")[0]
        if re.match(r"\s*include\s", line, re.IGNORECASE):
            findings.append(Finding("warning", "include", f"not followed: {line.strip()}", number, 1))
        match = _NODE.match(line)
        if match is None:
            continue
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(match[2])}
        if match[1].upper() == "DEFAULT":
            defaults |= pairs
            continue
        for name in read_hosts(match[1], findings, line=number, column=1):
            hosts[name] = _make_host(name, defaults | pairs)
    return Topology("slurm.conf", hosts=tuple(hosts.values()), records=len(hosts), findings=tuple(findings))


def _make_host(name: str, pairs: dict[str, str]) -> Host:
    gres = pairs.get("gres")
    return Host(
        name,
        cpus=_count(pairs.get("cpus")),
        sockets=_count(pairs.get("sockets")),
        cores_per_socket=_count(pairs.get("corespersocket")),
        threads_per_core=_count(pairs.get("threadspercore")),
        gres_text=gres,
        gres=None if gres is None else parse_gres(gres),
        weight=_count(pairs.get("weight", "1")),  # 1 is Slurm's default
        features=tuple(filter(None, pairs.get("feature", pairs.get("features", "")).split(","))),
    )


def _count(text: str | None) -> int | None:
    return int(text[:18]) if text is not None and text.isdecimal() else None
