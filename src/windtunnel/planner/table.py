"""The plan as people read it: what would be submitted, how often, and in which order of ranks."""

from collections.abc import Sequence

from windtunnel.fabric.placement import order_hosts
from windtunnel.hostlist import collapse_hostlist
from windtunnel.planner.prune import usable_nodes
from windtunnel.records.cluster import Topology
from windtunnel.records.plan import Plan, PlannedTrial, Shape
from windtunnel.settings.placement import PlacementSettings
from windtunnel.units import format_time_slurm


def group_by_shape(trials: Sequence[PlannedTrial]) -> dict[Shape, list[PlannedTrial]]:
    """Trials of one shape share a job array."""
    groups: dict[Shape, list[PlannedTrial]] = {}
    for trial in trials:
        groups.setdefault(trial.shape, []).append(trial)
    return groups


def render_plan(plan: Plan, topology: Topology | None) -> str:
    """A block for each shape, then what was pruned and why."""
    count, arrays = len(plan.trials), group_by_shape(plan.trials)
    lines = [f"study {plan.study}: {count} trials in {len(arrays)} shapes, {len(plan.pruned)} pruned"]
    for shape, trials in arrays.items():
        lines += ["", *_render_shape(shape, trials, topology)]
    if plan.pruned:
        lines += ["", "pruned:", *(f"  {item.name}: {item.reason}" for item in plan.pruned)]
    return "\n".join(lines)


def _render_shape(shape: Shape, trials: Sequence[PlannedTrial], topology: Topology | None) -> list[str]:
    size = f"{shape.nodes} x ({shape.ranks_per_node} ranks x {shape.cpus_per_rank} CPUs, {shape.mem_mib} MiB"
    gpus = f", {shape.gpus_per_node} GPUs" if shape.gpus_per_node else ""
    place = f"partition {shape.partition}, {format_time_slurm(shape.time_min)}"
    lines = [f"  {len(trials)} x {size}{gpus}), {place}"]
    width = max(len(trial.name) for trial in trials)
    for trial in trials:
        lines.append(f"    {trial.id}  {trial.name:{width}}  {_render_order(trial, topology)}".rstrip())
    return lines


def _render_order(trial: PlannedTrial, topology: Topology | None) -> str:
    if topology is None or trial.shape.nodes < 2:
        return ""
    policy = PlacementSettings.model_validate(trial.settings["placement"]).policy
    granted = [node.name for node in usable_nodes(topology)][: trial.shape.nodes]
    ordered = ",".join(order_hosts(granted, topology, policy))
    return f"ranks by {policy}: were {collapse_hostlist(granted)} granted, {ordered}"
