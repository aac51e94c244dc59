"""What was understood of a file, as plain values for JSON. Null is what the file does not say. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from windtunnel.fabric.facts_hosts import collect_gres_facts, collect_node_facts, collect_sinfo_facts
from windtunnel.fabric.facts_links import collect_link_facts, collect_p2p_facts
from windtunnel.fabric.facts_machine import collect_graph_facts, collect_hwloc_facts, collect_list_facts
from windtunnel.fabric.facts_network import collect_address_facts, collect_network_facts
from windtunnel.fabric.facts_timings import collect_nccl_facts, collect_osu_facts
from windtunnel.fabric.topology import Finding, Kind, Topology

Facts = dict[str, Any]

_COLLECTORS: Mapping[Kind, Callable[[Topology], Facts]] = {
    "topology.conf": collect_network_facts,
    "topology.yaml": collect_network_facts,
    "scontrol-topology": collect_network_facts,
    "ibnetdiscover": collect_network_facts,
    "topology-address": collect_address_facts,
    "scontrol-node": collect_node_facts,
    "slurm.conf": collect_node_facts,
    "sinfo": collect_sinfo_facts,
    "gres": collect_gres_facts,
    "nvidia-smi-topo": collect_link_facts,
    "nvidia-smi-p2p": collect_p2p_facts,
    "nvidia-smi-list": collect_list_facts,
    "hwloc": collect_hwloc_facts,
    "sysfs": collect_hwloc_facts,
    "nccl-graph": collect_graph_facts,
    "nccl-tests": collect_nccl_facts,
    "osu": collect_osu_facts,
}


def collect_facts(topology: Topology, *, version: str | None = None) -> Facts:
    """Facts of one file; `version` is that of the program that wrote it, which outputs do not say themselves."""
    errors = topology.errors
    return {
        "kind": topology.kind,
        "version": version,
        "malformed": bool(errors),
        "reason": "; ".join(dict.fromkeys(error.text for error in errors)) or None,
        **_COLLECTORS[topology.kind](topology),
        "findings": [describe_finding(finding) for finding in topology.findings],
    }


def describe_finding(finding: Finding) -> Facts:
    """A finding as plain values, without what it does not have."""
    values = {
        "severity": finding.severity,
        "code": finding.code,
        "text": finding.text,
        "line": finding.line,
        "column": finding.column,
    }
    return {key: value for key, value in values.items() if value is not None}


def render_finding(finding: Finding, name: str) -> str:
    """A finding as a line: `FILE:LINE:COLUMN: warning: …`."""
    place = ":".join(str(part) for part in (finding.line, finding.column) if part is not None)
    return f"{name}:{place + ':' if place else ''} {finding.severity}: {finding.text}"


def list_differences(expected: Any, got: Any, where: str = "") -> Iterable[str]:
    """Where facts differ from what is expected: keys that are not expected do not count, at any depth."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, value in expected.items():
            if key in got:
                yield from list_differences(value, got[key], f"{where}{key}.")
            else:
                yield f"{where}{key} is absent, expected {value!r}"
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield f"{where.removesuffix('.') or 'value'} is {got!r}, expected {expected!r}"
