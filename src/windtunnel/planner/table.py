"""The plan as people read it: what would be submitted, how often, and in which order of ranks."""

from collections.abc import Sequence

from windtunnel.fabric.placement import order_hosts
from windtunnel.hostlist import collapse_hostlist
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
    arrays = group_by_shape(plan.trials)
    total = f"{_count(len(plan.trials), 'trial')} in {_count(len(arrays), 'shape')}"
    lines = [f"study {plan.study}: {total}, {len(plan.pruned)} pruned"]
    for shape, trials in arrays.items():
        lines += ["", *_render_shape(shape, trials, topology, with_ids=bool(plan.identity.data_sha256))]
    if plan.pruned:
        lines += ["", "pruned:", *(f"  {item.name}: {item.reason}" for item in plan.pruned)]
    return "\n".join(lines)


def _render_shape(
    shape: Shape, trials: Sequence[PlannedTrial], topology: Topology | None, *, with_ids: bool
) -> list[str]:
    parts = [f"{_count(shape.nodes, 'node')} x {_count(shape.ranks_per_node, 'rank')}"]
    parts += [f"x {_count(shape.cpus_per_rank, 'CPU')}, {shape.mem_mib} MiB"]
    gpus = _count(shape.gpus_per_node, f"{shape.gpu_type} GPU".strip())
    parts += [f"and {gpus} a node" if shape.gpus_per_node else "a node"]
    names = {"partition": shape.partition, "account": shape.account, "QOS": shape.qos, "features": shape.constraint}
    names |= {f"--{name}": value for name, value in shape.flags}
    told = ", ".join(f"{name} {value}".rstrip() for name, value in names.items() if value or name.startswith("--"))
    place = f"{told}, limit {format_time_slurm(shape.time_min)}"
    lines = [f"  {_count(len(trials), 'trial')} of {' '.join(parts)}, {place}"]
    width = max(len(trial.name) for trial in trials)
    for trial in trials:
        # An id is of data too, and there may be none yet.
        trial_id = f"{trial.id}  " if with_ids or not trial.reads_data else ""
        lines.append(f"    {trial_id}{trial.name:{width}}  {_render_order(trial, topology)}".rstrip())
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _render_order(trial: PlannedTrial, topology: Topology | None) -> str:
    if topology is None or trial.shape.nodes < 2:
        return ""
    policy = PlacementSettings.model_validate(trial.settings["placement"]).policy
    granted = [node.name for node in topology.nodes][: trial.shape.nodes]
    ordered = ",".join(order_hosts(granted, topology, policy))
    return f"ranks by {policy}: were {collapse_hostlist(granted)} granted, {ordered}"
