"""Trials into job arrays: one array a shape, of tasks of one trial or a few, and what it asks of Slurm. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windtunnel.planner.table import group_by_shape
from windtunnel.records.plan import PlannedTrial, Shape
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.deadline import find_signal_lead_s
from windtunnel.slurm.limits import Limits

ENDS_AT_ONCE = {"no-requeue": True}
"""Of jobs with a successor: Slurm keeps it back while the job before it waits to be started again."""
MAX_ARRAY = 1_000_000
"""More tasks than any array has, for `%`: how many run at once is the scheduler's to say."""
_PACK_SPARE_MIN = 1
Pack = tuple[PlannedTrial, ...]
"""Trials that one task runs, one after the other."""
_INSTEAD = {
    "mem": ("mem-per-cpu", "mem-per-gpu"),
    "gpus-per-node": ("gpus", "gpus-per-socket", "gpus-per-task"),
    "requeue": ("no-requeue",),
}
"""Options of ours that give way to others that say the same."""


def cut_packs(trials: Sequence[PlannedTrial], *, per_job: int = 1, max_time_min: int | None = None) -> Iterator[Pack]:
    """Trials of one shape in packs of `per_job`, of fewer where their limits together pass `max_time_min`."""
    for shape, group in group_by_shape(trials).items():
        room = per_job if max_time_min is None else max_time_min // max(1, shape.time_min)
        size = max(1, min(per_job, room))
        if size > 1 and max_time_min is not None and _pack_time_min(shape, size) > max_time_min:
            size -= 1
        for start in range(0, len(group), size):
            yield tuple(group[start : start + size])


def pack_within(trials: Sequence[PlannedTrial], limits: Limits, *, per_job: int) -> list[Pack]:
    """Trials in packs of `per_job`, of fewer where the limits of their shape's account, QOS or partition ask it."""
    packs: list[Pack] = []
    for shape, group in group_by_shape(trials).items():
        longest = limits.find_max_time_min(limits.resolve(shape.account, shape.qos, shape.partition))
        packs += cut_packs(group, per_job=per_job, max_time_min=longest)
    return packs


def cut_arrays(packs: Sequence[Pack], *, limit: int) -> Iterator[tuple[Pack, ...]]:
    """Packs of one shape, and of one number of trials, together: at most `limit` an array."""
    groups: dict[tuple[Shape, int], list[Pack]] = {}
    for pack in packs:
        groups.setdefault((pack[0].shape, len(pack)), []).append(pack)
    for group in groups.values():
        for start in range(0, len(group), limit):
            yield tuple(group[start : start + limit])


def render_parameters(
    shape: Shape,
    cluster: ClusterSettings,
    *,
    name: str,
    trials: int = 1,
    exclude: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """submitit's parameters for jobs of `shape`, each of `trials`; what is empty is left to Slurm's own defaults.

    `options` of sbatch go before those of the shape.
    """
    time_min = _pack_time_min(shape, trials)
    setup = [f"module load {module} || exit 1" for module in cluster.modules] + list(cluster.setup)
    if any(name == "export" for name, _ in shape.flags):
        # What the job does not get of the login node's variables; sruns in it would give ranks none of the job's own.
        setup = ["unset SLURM_EXPORT_ENV", *setup]
    return {
        "job_name": name,
        "time": time_min,
        "nodes": shape.nodes,
        "ntasks_per_node": shape.ranks_per_node,
        "cpus_per_task": shape.cpus_per_rank,
        "wckey": None,
        "array_parallelism": MAX_ARRAY,
        "use_srun": False,
        "setup": setup or None,
        "additional_parameters": {**_render_options(shape, time_min, exclude, options or {}), **(options or {})},
    }


def _pack_time_min(shape: Shape, trials: int) -> int:
    # Starting the next trial takes time too.
    return shape.time_min * trials + (_PACK_SPARE_MIN if trials > 1 else 0)


def _render_options(
    shape: Shape, time_min: int, exclude: Sequence[str], instead: Mapping[str, Any]
) -> dict[str, Any]:
    gpus = f"{shape.gpu_type}:{shape.gpus_per_node}" if shape.gpu_type else str(shape.gpus_per_node)
    flags: dict[str, Any] = {name: _escape(value) or True for name, value in shape.flags}
    if "no-requeue" in instead:
        flags.pop("requeue", None)
    options = {
        "partition": _escape(shape.partition),
        "account": _escape(shape.account),
        "qos": _escape(shape.qos),
        "constraint": _escape(shape.constraint),
        "gpus-per-node": gpus if shape.gpus_per_node and "gpu" not in str(flags.get("gres")) else "",
        "mem": f"{shape.mem_mib}M",
        # To the batch script alone: the supervisor stops its ranks itself, and in order.
        "signal": f"B:TERM@{find_signal_lead_s(time_min)}",
        "requeue": True,
    }
    given = {name for name, others in _INSTEAD.items() if (flags.keys() | instead.keys()) & set(others)}
    kept = {name: value for name, value in options.items() if value and name not in given}
    nodes = ",".join(filter(None, (str(flags.get("exclude", "")), *exclude)))
    return {**kept, **flags, **({"exclude": nodes} if nodes else {})}


def _escape(text: str) -> str:
    # sbatch takes a backslash away from the character after it, within quotes too.
    return text.replace("\\", "\\\\")
