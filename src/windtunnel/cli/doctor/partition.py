"""What a partition means for the trials of a site file. Pure: what scontrol and sbatch say in, findings out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from windtunnel.cli.doctor.findings import Finding, fail, warn
from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.cluster import Node
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.limits import Bound
from windtunnel.slurm.scontrol import Partition, parse_config
from windtunnel.units import format_time_slurm

AREA = "partition"
_UNUSABLE = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWER(ED)?_DOWN|NOT_RESPONDING|\*")


def read_fields(line: str) -> dict[str, str]:
    """`Key=value` words of one line of `scontrol show partition --oneliner`."""
    return parse_config("\n".join(line.split()))


def choose_partition(partitions: Sequence[Partition], wanted: str) -> tuple[Partition | None, Finding]:
    """The partition of that name, or with no name the site's default one, and whether it can be used."""
    known = ", ".join(partition.name for partition in partitions) or "none"
    chosen = next((item for item in partitions if item.name == wanted or (not wanted and item.default)), None)
    if chosen is None:
        found = f"{wanted or 'no default'}, of {known}"
        return None, fail(AREA, "partition", found, "nothing can be submitted.", "Set partition in the site file.")
    if chosen.state != "UP":
        effect = "its jobs wait until the site opens it."
        return chosen, warn(AREA, "partition", f"{chosen.name} is {chosen.state}", effect, "Choose another one.")
    return chosen, Finding(AREA, "partition", f"{chosen.name}, of {known}")


def judge_partition(partition: Partition, fields: Mapping[str, str], cluster: ClusterSettings) -> list[Finding]:
    """Its time limit, its sharing and its preemption."""
    return [_time(partition, cluster), *_sharing(fields), *_preemption(fields)]


def judge_nodes(nodes: Sequence[Node], cluster: ClusterSettings) -> list[Finding]:
    """Which of its nodes can run trials, and their GPUs."""
    if not nodes:
        return [fail(AREA, "nodes", "none", "nothing can start.", "Choose another partition.")]
    bad = [node.name for node in nodes if _UNUSABLE.search(node.state.upper())]
    states = Counter(node.state for node in nodes)
    found = f"{len(nodes)}: " + ", ".join(f"{count} {state}" for state, count in states.most_common(4))
    usable = Finding(AREA, "nodes", found)
    if len(bad) == len(nodes):
        usable = fail(AREA, "nodes", found, "no node can start a job now.", "Ask the site (sinfo --list-reasons).")
    elif bad:
        usable = warn(AREA, "nodes", found, f"{collapse_hostlist(bad)} cannot be used now.", "Nothing to set.")
    return [usable, _gpus(nodes, cluster)]


def judge_bounds(bounds: Sequence[Bound], *, max_array_tasks: int) -> Finding:
    """How many jobs the user may have in the queue."""
    if not bounds:
        return Finding(AREA, "jobs at a time", f"no limit of this user's; {max_array_tasks} an array")
    lowest = min(bounds, key=lambda bound: bound.limit)
    found = f"{lowest.limit} ({lowest.told}); {max_array_tasks} an array"
    if lowest.limit < 10:
        effect = "a sweep goes in bit by bit, so that a driver must run all the time."
        remedy = "Set sweep.trials_per_job, or start it with windtunnel sweep STUDY --driver=sbatch."
        return warn(AREA, "jobs at a time", found, effect, remedy)
    return Finding(AREA, "jobs at a time", f"{found}; the rest goes in as room appears")


def judge_test_only(code: int, words: str) -> Finding:
    """What `sbatch --test-only` said to a job with the site file's settings."""
    told = next((line for line in reversed(words.strip().splitlines()) if line.strip()), "no answer")
    told = told.removeprefix("sbatch: ").removeprefix("error: ")
    if code:
        remedy = "Correct partition, account, qos, constraint or sbatch in the site file."
        return fail(AREA, "test job", told, "sbatch refuses jobs with these settings.", remedy)
    return Finding(AREA, "test job", re.sub(r"^Job \d+ to start", "would start", told))


def _time(partition: Partition, cluster: ClusterSettings) -> Finding:
    limit = partition.max_time_min
    found = f"at most {format_time_slurm(limit)}" if limit is not None else "no limit"
    if limit is not None and cluster.time > limit:
        remedy = f"Set time in the site file to {format_time_slurm(limit)} or less."
        asked = f"trials ask for {format_time_slurm(cluster.time)}, and would be refused or wait for ever."
        return fail(AREA, "time limit", found, asked, remedy)
    return Finding(AREA, "time limit", found)


def _sharing(fields: Mapping[str, str]) -> list[Finding]:
    word = fields.get("OverSubscribe", fields.get("Shared", "NO"))
    if word.startswith("EXCLUSIVE"):
        effect = "every job gets whole nodes."
        return [warn(AREA, "sharing", word, effect, "Set sweep.trials_per_job where trials are short.")]
    if word.startswith("FORCE"):
        effect = "jobs share cores, so that measured speeds are not a trial's own."
        return [warn(AREA, "sharing", word, effect, "Choose another partition for what is measured.")]
    return []


def _preemption(fields: Mapping[str, str]) -> list[Finding]:
    mode, grace = fields.get("PreemptMode", "OFF"), fields.get("GraceTime", "0")
    if mode in ("OFF", "REQUEUE") or "CLUSTER" in mode:
        return []
    effect = f"a preempted trial has {grace} s to write a checkpoint" + (
        ", and is suspended: its speed is not its own." if mode == "SUSPEND" else "."
    )
    return [warn(AREA, "preemption", f"PreemptMode={mode}", effect, "Set training.checkpoint_every small enough.")]


def _gpus(nodes: Sequence[Node], cluster: ClusterSettings) -> Finding:
    most = max(node.gpus for node in nodes)
    found = f"{sum(node.gpus for node in nodes)} on {sum(node.gpus > 0 for node in nodes)} nodes"
    if cluster.gpus_per_rank > most:
        remedy = f"Set gpus_per_rank in the site file to {most} or less, or another partition."
        return fail(AREA, "GPUs", found, f"trials ask for {cluster.gpus_per_rank} a rank.", remedy)
    if most and not cluster.gpus_per_rank:
        effect = "gpus_per_rank is 0: trials train on the CPU."
        return warn(AREA, "GPUs", found, effect, "Set gpus_per_rank: 1 in the site file.")
    return Finding(AREA, "GPUs", found if most else "none")
