"""Facts of hosts, and of Gres strings. Pure."""

from collections.abc import Callable
from typing import Any

from windtunnel.fabric.topology import Host, Topology
from windtunnel.gres import Gres, GresEntry, count_whole_gpus


def collect_node_facts(topology: Topology) -> dict[str, Any]:
    """Facts of `scontrol show node`; where nodes differ, by node."""
    hosts = topology.hosts
    types = sorted({name for host in hosts if host.gres for name in host.gres.types})
    return {
        "nodes": len(hosts),
        "gpus": _sum_or_none(None if host.gres is None else host.gres.gpus for host in hosts),
        "gpu_type": types[0] if len(types) == 1 else types or None,
        "sockets": _one_or_each(hosts, lambda host: host.sockets),
        "cores_per_socket": _one_or_each(hosts, lambda host: host.cores_per_socket),
        "threads": _one_or_each(hosts, lambda host: host.threads_per_core),
        "cpus": _one_or_each(hosts, lambda host: host.cpus),
        "gres": _one_or_each(hosts, lambda host: host.gres_text),
        "state": _one_or_each(hosts, lambda host: host.state),
        "weight": _one_or_each(hosts, lambda host: host.weight),
        "used": _one_or_each(hosts, lambda host: None if host.gres_used is None else host.gres_used.gpus),
        "cfgtres_gpu": _one_or_each(hosts, lambda host: host.tres_gpus),
    }


def collect_sinfo_facts(topology: Topology) -> dict[str, Any]:
    """Facts of sinfo's rows, each node counted once."""
    hosts = topology.hosts
    repeated = [finding.text.split()[0] for finding in topology.find("repeated")]
    used = [None if host.gres_used is None else host.gres_used.gpus for host in hosts]
    return {
        "nodes": len(hosts),
        "distinct_nodes": len(hosts),
        "rows": topology.records,
        "dup": repeated[0] if len(repeated) == 1 else repeated or None,
        "gpus": _sum_or_none(None if host.gres is None else host.gres.gpus for host in hosts),
        "used": used,
        "states": {host.name: host.state for host in hosts},
    }


def collect_gres_facts(topology: Topology) -> dict[str, Any]:
    """Facts of each Gres string, in the file's order."""
    return {
        "lines": len(topology.lines),
        "gres": [{"text": text, **describe_gres(gres)} for text, gres in topology.lines],
    }


def describe_gres(gres: Gres) -> dict[str, Any]:
    """What a Gres string means; resources that it does not have are left out."""
    facts: dict[str, Any] = {"gpu": gres.gpus, "types": gres.types, "idx": _note(gres, lambda entry: entry.indexes)}
    if any(entry.sockets for entry in gres.gpu_entries):
        facts["sockets"] = _note(gres, lambda entry: entry.sockets)
    if gres.mig:
        facts |= {"mig": gres.mig, "physical": count_whole_gpus(gres.mig)}
    others = {entry.name: gres.count(entry.name) for entry in gres.entries if entry.name != "gpu"}
    shared = {name: others.pop(name) for name in ("shard", "mps") if name in others}
    return facts | shared | ({"other": others} if others else {})


def _note(gres: Gres, note: Callable[[GresEntry], str | None]) -> str | dict[str, str | None] | None:
    """A note of the GPUs: as it is where all say the same, by type where they differ."""
    notes = {entry.type or "gpu": note(entry) for entry in gres.gpu_entries}
    values = set(notes.values())
    return next(iter(values)) if len(values) == 1 else notes or None


def _one_or_each(hosts: tuple[Host, ...], value: Callable[[Host], Any]) -> Any:
    values = {host.name: value(host) for host in hosts}
    same = len(set(values.values())) == 1
    return next(iter(values.values())) if same else values or None


def _sum_or_none(counts: Any) -> int | None:
    found = list(counts)
    return None if None in found else sum(found)
