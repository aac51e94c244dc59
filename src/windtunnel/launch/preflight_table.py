"""A pre-flight as people read it. Pure."""

from windtunnel.cost import Cost, format_node_hours
from windtunnel.launch.budget import add_up
from windtunnel.launch.preflight import Preflight, ShapePlan
from windtunnel.records.plan import Plan
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.units import format_time_slurm

_HEAD = ("trials", "jobs", "nodes", "ranks", "CPUs", "GPUs", "memory", "limit", "where", "would start")


def render_preflight(preflight: Preflight) -> str:
    """A line a shape, the costs, and what is wrong."""
    new = sum(item.trials for item in preflight.shapes)
    parts = [f"{new} trials to submit"]
    parts += [f"{preflight.under_way} under way"] if preflight.under_way else []
    parts += [f"{preflight.finished} finished"] if preflight.finished else []
    lines = [f"study {preflight.study}: {', '.join(parts)}", *_render_shapes(preflight)]
    lines += [f"  {line}" for line in _render_costs(preflight)]
    lines += [f"  warning: {warning}" for warning in preflight.warnings]
    lines += [f"  mistake: {mistake}" for mistake in preflight.mistakes]
    return "\n".join(lines)


def render_bounds(plan: Plan, cluster: ClusterSettings) -> str:
    """What all trials of a plan may cost, as though none had run."""
    shapes = [trial.shape for trial in {trial.id: trial for trial in plan.trials}.values()]
    charge = add_up(shapes, used_s=0.0, known_s={}, cluster=cluster)
    return _render_at_most(charge.at_most, charge.gpu_hours)


def _render_shapes(preflight: Preflight) -> list[str]:
    if not preflight.shapes:
        return []
    rows = [_HEAD, *(_row(item, on_slurm=preflight.on_slurm) for item in preflight.shapes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(item: ShapePlan, *, on_slurm: bool) -> tuple[str, ...]:
    shape = item.shape
    arrays = f" in {item.arrays} arrays" if on_slurm and item.arrays > 1 else ""
    names = (shape.partition, shape.account, shape.qos, shape.constraint)
    start = item.estimate.start or item.estimate.refusal if item.estimate is not None else "-"
    return (
        str(item.trials),
        f"{item.jobs}{arrays}",
        str(shape.nodes),
        f"{shape.ranks_per_node} a node",
        f"{shape.cpus_per_rank} a rank",
        f"{shape.gpus_per_node} {shape.gpu_type} a node".replace("  ", " ") if shape.gpus_per_node else "-",
        f"{shape.mem_mib} MiB a node",
        format_time_slurm(shape.time_min),
        " ".join(filter(None, names)),
        start or "when there is room",
    )


def _render_costs(preflight: Preflight) -> list[str]:
    lines = [_render_at_most(preflight.at_most, preflight.gpu_hours)]
    if preflight.expected is not None:
        lines.append(f"expected {preflight.expected}: as the finished trials of the same shapes took")
    if preflight.used.node_hours > 0:
        lines.append(f"used so far {preflight.used}")
    return lines


def _render_at_most(cost: Cost, gpu_hours: float) -> str:
    gpus = f", {format_node_hours(gpu_hours)} GPU-hours" if gpu_hours else ""
    return f"at most {cost}{gpus}: each trial once, to its time limit"
