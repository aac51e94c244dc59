"""`scontrol show node`: as text, one record a line with `-o`, or as JSON. Pure.

Source: `slurm_sprint_node_table` of Slurm 20.02 to 25.11, and the data parser's NODE of its JSON.
"""

import json
from typing import Any

from windtunnel.fabric.topology import Finding, Host, Topology, place_of
from windtunnel.gres import Gres, parse_gres
from windtunnel.slurmtext import find_records

_ABSENT = frozenset({"", "(null)", "N/A", "n/a"})


def parse_nodes_text(text: str) -> Topology:
    """Nodes of the text form; a field that is cut off or absent is None."""
    findings: list[Finding] = []
    hosts = []
    records = list(find_records(text, "NodeName"))
    if records and not text.endswith("\n") and len(records[-1][1]) > 1:
        records[-1][1].popitem()  # the text may end inside it
    for offset, fields in records:
        hosts.append(_read_fields(fields))
        if "State" not in fields:
            line, column = place_of(text, offset)
            message = f"the record of node {fields['NodeName']} is cut short: it has no State"
            findings.append(Finding("warning", "cut-record", message, line, column))
    return Topology("scontrol-node", hosts=tuple(hosts), records=len(hosts), findings=tuple(findings))


def parse_nodes_json(text: str) -> Topology:
    """Nodes of `scontrol show node --json`, or of `sinfo`'s and slurmrestd's document of the same shape."""
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        line, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        problem = Finding("error", "json", f"no JSON: {getattr(error, 'msg', error)}", line, column)
        return Topology("scontrol-node", findings=(problem,))
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list):
        problem = Finding("error", "json", "the document has no list `nodes`", 1, 1)
        return Topology("scontrol-node", findings=(problem,))
    hosts = tuple(
        _read_object(node) for node in nodes if isinstance(node, dict) and isinstance(node.get("name"), str)
    )
    return Topology("scontrol-node", hosts=hosts, records=len(nodes))


def count_tres_gpus(tres: str) -> int | None:
    """GPUs of a TRES list; None where it does not list any, as when AccountingStorageTRES does not name them."""
    found = parse_gres(tres)
    return found.gpus if found.gpu_entries else None


def _read_fields(fields: dict[str, str]) -> Host:
    return Host(
        name=fields["NodeName"],
        cpus=_count(fields.get("CPUTot")),
        sockets=_count(fields.get("Sockets")),
        cores_per_socket=_count(fields.get("CoresPerSocket")),
        threads_per_core=_count(fields.get("ThreadsPerCore")),
        gres_text=fields.get("Gres"),
        gres=_gres(fields.get("Gres")),
        gres_used=_gres(fields.get("GresUsed")),
        tres_gpus=count_tres_gpus(fields.get("CfgTRES", "")),
        state=fields.get("State"),
        weight=_count(fields.get("Weight")),
        features=_names(fields.get("ActiveFeatures", fields.get("AvailableFeatures"))),
    )


def _read_object(node: dict[str, Any]) -> Host:
    return Host(
        name=node["name"],
        cpus=_number(node.get("cpus")),
        sockets=_number(node.get("sockets")),
        cores_per_socket=_number(node.get("cores")),
        threads_per_core=_number(node.get("threads")),
        gres_text=_string(node.get("gres")),
        gres=_gres(_string(node.get("gres"))),
        gres_used=_gres(_string(node.get("gres_used"))),
        tres_gpus=count_tres_gpus(_string(node.get("tres")) or ""),
        state=_state(node.get("state")),
        weight=_number(node.get("weight")),
        features=_features(node.get("active_features", node.get("features"))),
    )


def _gres(text: str | None) -> Gres | None:
    return None if text is None else parse_gres(text)


def _count(text: str | None) -> int | None:
    return int(text[:18]) if text is not None and text.isdecimal() else None


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None or text in _ABSENT else tuple(name for name in text.split(",") if name)


def _number(value: Any) -> int | None:
    """A number, or one of the data parser's `{"set": true, "infinite": false, "number": 1}`."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _state(value: Any) -> str | None:
    if isinstance(value, list):
        return "+".join(str(part) for part in value) or None
    return _string(value)


def _features(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(part) for part in value)
    return _names(_string(value))
