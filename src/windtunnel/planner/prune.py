"""Which legal trials do not fit the partition that was measured, and why. Pure."""

from collections.abc import Callable

from windtunnel.records.cluster import Node, Topology
from windtunnel.records.plan import Shape
from windtunnel.units import format_time_slurm

_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "MAINT")


def find_misfit(shape: Shape, topology: Topology) -> str:
    """Why the partition cannot hold this shape, with the fix; empty when it can."""
    if topology.max_time_min is not None and shape.time_min > topology.max_time_min:
        asked, limit = format_time_slurm(shape.time_min), format_time_slurm(topology.max_time_min)
        return f"cluster.time={asked} is past the limit of partition {topology.partition}: set cluster.time={limit}"
    nodes = usable_nodes(topology)
    for need, count, unit, has in _needs(shape):
        if count == 0:
            continue
        fit = tuple(node for node in nodes if has(node) >= count)
        if len(fit) < shape.nodes:
            most = max((has(node) for node in nodes), default=0)
            return (
                f"{shape.nodes} nodes with {count} {unit} each are needed ({need}), but {len(fit)} of {len(nodes)}"
                f" usable nodes of {topology.partition} have them (largest: {most}): lower parallelism.*"
                " or cluster.*_per_rank"
            )
        nodes = fit
    return ""


def usable_nodes(topology: Topology) -> tuple[Node, ...]:
    """Nodes that a job may get: not down, drained, failing or under maintenance."""
    return tuple(node for node in topology.nodes if not any(word in node.state.upper() for word in _UNUSABLE))


def _needs(shape: Shape) -> tuple[tuple[str, int, str, Callable[[Node], int]], ...]:
    ranks = f"{shape.ranks_per_node} ranks a node"
    cpus = shape.ranks_per_node * shape.cpus_per_rank
    return (
        (f"{ranks} x {shape.cpus_per_rank}", cpus, "CPUs", lambda node: node.cpus),
        (ranks, shape.gpus_per_node, "GPUs", lambda node: node.gpus),
        (ranks, shape.mem_mib, "MiB of memory", lambda node: node.mem_mib),
    )
