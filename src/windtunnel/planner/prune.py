"""Which legal trials do not fit the partition that was measured, and why. Pure."""

from collections.abc import Callable

from windtunnel.records.cluster import Node, Topology
from windtunnel.records.plan import Shape
from windtunnel.units import format_time_slurm

_FEWER = "lower parallelism.* or cluster.*_per_rank"


def find_misfit(shape: Shape, topology: Topology) -> str:
    """Why the partition cannot hold this shape, with the fix; empty when it can.

    By its hardware alone: a node that was down when the cluster was measured may be back when the trial starts.
    """
    if topology.max_time_min is not None and shape.time_min > topology.max_time_min:
        asked, limit = format_time_slurm(shape.time_min), format_time_slurm(topology.max_time_min)
        return f"cluster.time={asked} is past the limit of partition {topology.partition}: set cluster.time={limit}"
    nodes = topology.nodes
    for need, count, unit, remedy, has in _needs(shape):
        if count == 0:
            continue
        fit = tuple(node for node in nodes if has(node) >= count)
        if len(fit) < shape.nodes:
            most = max((has(node) for node in nodes), default=0)
            return (
                f"{shape.nodes} nodes with {count} {unit} each are needed ({need}), but {len(fit)} of {len(nodes)}"
                f" nodes of {topology.partition} have them (largest: {most}): {remedy}"
            )
        nodes = fit
    return ""


def _needs(shape: Shape) -> tuple[tuple[str, int, str, str, Callable[[Node], int]], ...]:
    ranks = f"{shape.ranks_per_node} ranks a node"
    cpus = shape.ranks_per_node * shape.cpus_per_rank
    return (
        (f"{ranks} x {shape.cpus_per_rank}", cpus, "CPUs", _FEWER, lambda node: node.cpus),
        (ranks, shape.gpus_per_node, "GPUs", _FEWER, lambda node: node.gpus),
        (ranks, shape.mem_mib, "MiB of memory", "lower cluster.memory", lambda node: node.mem_mib),
    )
