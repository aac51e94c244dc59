"""What `scontrol show` says of partitions, nodes and switches, as records. Parsers are pure; readers run scontrol."""

from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.errors import ClusterError, CommandError
from windtunnel.gres import count_gpus
from windtunnel.hostlist import collapse_hostlist, expand_hostlist
from windtunnel.process import describe_failure, run_command
from windtunnel.records.cluster import Node, Switch
from windtunnel.slurmtext import find_records
from windtunnel.units import parse_time_min

_TIMEOUT_S = 60.0
_ABSENT = frozenset({"", "(null)", "N/A", "n/a", "NONE", "None"})
_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE"})


@dataclass(frozen=True)
class Partition:
    """A partition; `max_time_min` is None where there is no limit, or where Slurm does not say."""

    name: str
    state: str
    nodes: tuple[str, ...]
    max_time_min: int | None
    default: bool
    min_nodes: int = 0
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    max_mem_per_node_mib: int | None = None
    qos: str = ""
    """The partition's own QOS, whose limits hold for all its jobs."""
    allow_qos: tuple[str, ...] = ()
    """Empty for all of them."""
    deny_qos: tuple[str, ...] = ()
    allow_accounts: tuple[str, ...] = ()
    """Empty for all of them."""
    deny_accounts: tuple[str, ...] = ()


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Partitions of `scontrol show partition`, with or without `-o`."""
    return tuple(
        Partition(
            name=fields["PartitionName"],
            state=fields.get("State", "UNKNOWN"),
            nodes=_hosts(fields.get("Nodes", "")),
            max_time_min=_time_limit(fields.get("MaxTime", "")),
            default=fields.get("Default") == "YES",
            min_nodes=_count(fields.get("MinNodes", "")) or 0,
            max_nodes=_count(fields.get("MaxNodes", "")),
            max_cpus_per_node=_count(fields.get("MaxCPUsPerNode", "")),
            max_mem_per_node_mib=_count(fields.get("MaxMemPerNode", "")),
            qos="" if fields.get("QoS", "") in _ABSENT else fields["QoS"],
            allow_qos=_names(fields.get("AllowQos", "")),
            deny_qos=_names(fields.get("DenyQos", "")),
            allow_accounts=_names(fields.get("AllowAccounts", "")),
            deny_accounts=_names(fields.get("DenyAccounts", "")),
        )
        for _, fields in find_records(text, "PartitionName")
    )


def parse_nodes(text: str) -> tuple[Node, ...]:
    """Nodes of `scontrol show node`, with or without `-o`; their switches are not in that output."""
    return tuple(
        Node(
            name=fields["NodeName"],
            cpus=int(fields.get("CPUTot", 0)),
            mem_mib=int(fields.get("RealMemory", 0)),
            # CfgTRES lists GPUs only where AccountingStorageTRES names them; Gres always does.
            gpus=count_gpus(fields.get("Gres", "")),
            state=fields.get("State", "UNKNOWN"),
            switches=(),
        )
        for _, fields in find_records(text, "NodeName")
    )


def parse_switches(text: str) -> tuple[Switch, ...]:
    """Switches of `scontrol show topology`, in its order; a block of topology/block counts as a leaf.

    Aggregated blocks are left out: they name blocks again, at a distance that Slurm does not state.
    """
    switches = []
    for _, fields in find_records(text, "SwitchName", "BlockName", "AggregatedBlock"):
        name = fields.get("SwitchName") or fields.get("BlockName")
        if name is not None:
            below = _hosts(fields.get("Switches", ""))
            level = int(fields.get("Level", 0))
            switches.append(Switch(name, level, _hosts(fields.get("Nodes", "")), below))
    return tuple(switches)


def parse_config(text: str) -> dict[str, str]:
    """`Key = value` lines of `scontrol show config`."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def list_partitions() -> tuple[str, ...]:
    """Names of the cluster's partitions."""
    return tuple(partition.name for partition in read_partitions())


def read_partitions() -> tuple[Partition, ...]:
    """All partitions; raises CommandError when Slurm does not answer."""
    return parse_partitions(_show("partition", "-o"))


def read_partition(name: str) -> Partition:
    """One partition; raises ClusterError with the known ones when there is none of that name."""
    partitions = read_partitions()
    for partition in partitions:
        if partition.name == name:
            return partition
    known = ", ".join(partition.name for partition in partitions) or "none"
    raise ClusterError(
        f"partition {name!r} does not exist on this cluster, which has: {known}; "
        "set cluster.partition to one of these"
    )


def read_nodes(names: Sequence[str]) -> tuple[Node, ...]:
    """The nodes of these names, in their order; raises ClusterError for one that Slurm does not know."""
    if not names:
        return ()
    found = {node.name: node for node in parse_nodes(_show("node", "-o", collapse_hostlist(names)))}
    missing = [name for name in names if name not in found]
    if missing:
        raise ClusterError(
            f"Slurm knows no node {collapse_hostlist(missing)}: check the partition's Nodes in slurm.conf"
        )
    return tuple(found[name] for name in names)


def read_switches() -> tuple[Switch, ...]:
    """The cluster's switches; none where no topology is configured."""
    finished = run_command(["scontrol", "show", "topology"], timeout_s=_TIMEOUT_S, check=False)
    if finished.code and "No topology information" not in finished.stderr + finished.stdout:
        raise CommandError(describe_failure(finished))
    return parse_switches(finished.stdout)


def read_config() -> dict[str, str]:
    """Slurm's running configuration."""
    return parse_config(_show("config"))


def _show(*what: str) -> str:
    return run_command(["scontrol", "show", *what], timeout_s=_TIMEOUT_S).stdout


def _hosts(text: str) -> tuple[str, ...]:
    return () if text in _ABSENT else tuple(expand_hostlist(text))


def _time_limit(text: str) -> int | None:
    return None if text in _ABSENT | _NO_LIMIT else parse_time_min(text)


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _names(text: str) -> tuple[str, ...]:
    return () if text in _ABSENT | {"ALL"} else tuple(name for name in text.split(",") if name)
