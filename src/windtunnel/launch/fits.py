"""Whether Slurm would ever run jobs of a shape: its partition, nodes, account and QOS hold them, or not. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from windtunnel.planner.prune import find_misfit
from windtunnel.records.cluster import Node, Topology
from windtunnel.records.plan import Shape
from windtunnel.slurm.limits import Association, Limits, Qos
from windtunnel.slurm.scontrol import Partition
from windtunnel.units import format_time_slurm

_CLOSED = ("DRAIN", "INACTIVE")
_GONE = ("DOWN", "DRAIN", "FAIL", "MAINT", "POWERED_DOWN")


def find_misfits(shape: Shape, limits: Limits, nodes: Sequence[Node]) -> list[str]:
    """Every reason for which such a job could never start, with the fix. `nodes` are those of its partition."""
    place = limits.find_partition(shape.partition)
    if place is None:
        known = ", ".join(partition.name for partition in limits.partitions) or "none"
        return [f"partition {shape.partition!r} does not exist on this cluster ({known}): set cluster.partition"]
    return [*_find_in_partition(shape, place, nodes), *_find_in_accounting(shape, limits, place)]


def find_delays(shape: Shape, limits: Limits, nodes: Sequence[Node]) -> list[str]:
    """What would keep such a job waiting now, though not for ever."""
    place = limits.find_partition(shape.partition)
    if place is not None and place.state == "DOWN":
        return [f"partition {place.name} is DOWN: jobs wait until it is up"]
    alive = [node for node in nodes if not any(word in node.state for word in _GONE)]
    if nodes and len(alive) < shape.nodes:
        return [f"{len(alive)} of {len(nodes)} nodes of {shape.partition} are in service, {shape.nodes} are needed"]
    return []


def _find_in_partition(shape: Shape, place: Partition, nodes: Sequence[Node]) -> Iterator[str]:
    name = place.name
    if place.state in _CLOSED:
        yield f"partition {name} is {place.state} and takes no jobs: choose another, or wait until it is UP"
    if place.max_time_min is not None and shape.time_min > place.max_time_min:
        yield _past("cluster.time", shape.time_min, place.max_time_min, f"MaxTime of partition {name}")
    if place.max_nodes is not None and shape.nodes > place.max_nodes:
        yield f"{shape.nodes} nodes are past MaxNodes={place.max_nodes} of partition {name}: lower parallelism.nodes"
    if shape.nodes < place.min_nodes:
        yield f"{shape.nodes} nodes are below MinNodes={place.min_nodes} of partition {name}: raise parallelism.nodes"
    cpus = shape.ranks_per_node * shape.cpus_per_rank
    if place.max_cpus_per_node is not None and cpus > place.max_cpus_per_node:
        yield (
            f"{cpus} CPUs a node are past MaxCPUsPerNode={place.max_cpus_per_node} of partition {name}: lower"
            " cluster.cpus_per_rank, or raise parallelism.nodes"
        )
    if place.max_mem_per_node_mib is not None and shape.mem_mib > place.max_mem_per_node_mib:
        most = place.max_mem_per_node_mib
        yield (
            f"{shape.mem_mib} MiB a node are past MaxMemPerNode={most} of partition {name}: lower cluster.memory,"
            " or raise parallelism.nodes"
        )
    misfit = find_misfit(shape, Topology(name, "slurm", tuple(nodes), None, "")) if nodes else ""
    if misfit:
        yield misfit


def _find_in_accounting(shape: Shape, limits: Limits, place: Partition) -> Iterator[str]:
    use = limits.resolve(shape.account, shape.qos, shape.partition)
    if _is_barred(use.account, place.allow_accounts, place.deny_accounts):
        yield f"partition {place.name} is not for account {use.account!r}: set cluster.account or cluster.partition"
    if _is_barred(use.qos, place.allow_qos, place.deny_qos):
        yield f"partition {place.name} does not take QOS {use.qos!r}: set cluster.qos or cluster.partition"
    if not limits.user:
        return
    association = limits.find_association(use.account, use.partition)
    if association is None:
        known = ", ".join(sorted({item.account for item in limits.associations})) or "none"
        yield f"user {limits.user} has no account {use.account!r} here (has: {known}): set cluster.account"
        return
    if use.qos not in association.qos and shape.qos:
        known = ", ".join(association.qos) or "none"
        yield f"account {use.account!r} may not use QOS {use.qos!r} (may: {known}): set cluster.qos"
        return
    yield from _find_past_limits(shape, limits)


def _find_past_limits(shape: Shape, limits: Limits) -> Iterator[str]:
    if not {"limits", "safe"} & limits.enforced:
        return
    use = limits.resolve(shape.account, shape.qos, shape.partition)
    association = limits.find_association(use.account, use.partition)
    bounds: list[tuple[str, Association | Qos]] = []
    if association is not None:
        bounds.append((f"account {use.account!r}", association))
    bounds += [(f"QOS {item.name!r}", item) for item in limits.find_qos(use.qos, use.account, use.partition)]
    for told, bound in bounds:
        if bound.max_time_min is not None and shape.time_min > bound.max_time_min:
            yield _past("cluster.time", shape.time_min, bound.max_time_min, f"MaxWall of {told}")
        yield from _find_past_tres(shape, bound.max_tres, told)


def _find_past_tres(shape: Shape, most: Mapping[str, int], told: str) -> Iterator[str]:
    asked = {
        "node": shape.nodes,
        "cpu": shape.ranks * shape.cpus_per_rank,
        "mem": shape.mem_mib * shape.nodes,
        "gres/gpu": shape.gpus_per_node * shape.nodes,
    }
    for name, count in asked.items():
        if name in most and count > most[name]:
            yield f"{name}={count} is past {name}={most[name]}, the most that {told} gives a job: ask for less"


def _is_barred(name: str, allowed: Sequence[str], denied: Sequence[str]) -> bool:
    return bool(name) and (name in denied or (bool(allowed) and name not in allowed))


def _past(setting: str, asked_min: int, most_min: int, told: str) -> str:
    asked, most = format_time_slurm(asked_min), format_time_slurm(most_min)
    return f"{setting}={asked} is past {most}, the {told}: set {setting}={most}"
