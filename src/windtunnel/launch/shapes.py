"""Trials into job arrays: one array a shape, and what each array asks of Slurm. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from windtunnel.planner.table import group_by_shape
from windtunnel.records.plan import PlannedTrial, Shape
from windtunnel.settings.cluster import ClusterSettings

MAX_ARRAY = 1000
"""Tasks in one array; Slurm's MaxArraySize is 1001 by default, and the highest index is one less."""
_SIGNAL_LEAD_S = 60


def cut_arrays(trials: Sequence[PlannedTrial], *, limit: int = MAX_ARRAY) -> Iterator[tuple[PlannedTrial, ...]]:
    """Trials of one shape together, at most `limit` an array."""
    for group in group_by_shape(trials).values():
        for start in range(0, len(group), limit):
            yield tuple(group[start : start + limit])


def render_parameters(shape: Shape, cluster: ClusterSettings, *, name: str) -> dict[str, Any]:
    """submitit's parameters for jobs of `shape`; what is empty is left to Slurm's own defaults."""
    optional = {
        "partition": shape.partition,
        "account": shape.account,
        "qos": shape.qos,
        "constraint": shape.constraint,
        "gpus_per_node": shape.gpus_per_node,
    }
    extra = {
        "mem": f"{shape.mem_mib}M",
        # To the batch script alone: the supervisor stops its ranks itself, and in order.
        "signal": f"B:TERM@{min(_SIGNAL_LEAD_S, shape.time_min * 60 // 6)}",
        "requeue": True,
    }
    return {
        "job_name": name,
        "time": shape.time_min,
        "nodes": shape.nodes,
        "ntasks_per_node": shape.ranks_per_node,
        "cpus_per_task": shape.cpus_per_rank,
        "wckey": None,
        # How many run at once is the scheduler's to say.
        "array_parallelism": MAX_ARRAY,
        "use_srun": False,
        "setup": [f"module load {module}" for module in cluster.modules] or None,
        "additional_parameters": extra,
        **{key: value for key, value in optional.items() if value},
    }
