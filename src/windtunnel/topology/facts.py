"""The facts of a place: its nodes with the switches above them, as Slurm or this machine says."""

import socket

from windtunnel.artifacts import hash_json
from windtunnel.device.accelerator import count_accelerators, read_device
from windtunnel.device.cpu import count_cpus, read_cpu_name, read_driver_version, read_memory_mib
from windtunnel.errors import ClusterError
from windtunnel.fabric.graph import find_switch_paths
from windtunnel.records.cluster import Node, Topology
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.scontrol import read_config, read_nodes, read_partition, read_switches

# What decides how jobs are placed and bound; the rest of Slurm's configuration changes no measurement.
_CONFIG_KEYS = (
    "SLURM_VERSION",
    "TopologyPlugin",
    "SelectType",
    "SelectTypeParameters",
    "TaskPlugin",
    "ProctrackType",
)


def read_facts(settings: ClusterSettings) -> Topology:
    """Nodes and switches of the settings' partition, or of this machine when `kind` is local."""
    return read_slurm_facts(settings.partition) if settings.kind == "slurm" else read_local_facts(settings.partition)


def read_slurm_facts(partition: str) -> Topology:
    """A Slurm partition; raises ClusterError when there is none of that name, or it has no nodes."""
    found = read_partition(partition)
    if not found.nodes:
        raise ClusterError(f"partition {partition!r} has no nodes: give it some in slurm.conf, or name another one")
    paths = find_switch_paths(read_switches())
    nodes = tuple(
        Node(node.name, node.cpus, node.mem_mib, node.gpus, node.state, paths.get(node.name, ()))
        for node in read_nodes(found.nodes)
    )
    config = read_config()
    software = {key: config[key] for key in _CONFIG_KEYS if key in config}
    fingerprint = hash_facts(nodes, {**software, "driver": read_driver_version()})
    return Topology(partition, "slurm", nodes, found.max_time_min, fingerprint)


def read_local_facts(partition: str) -> Topology:
    """This machine as a partition of one node without switches."""
    node = Node(
        name=socket.gethostname(),
        cpus=count_cpus(),
        mem_mib=read_memory_mib(),
        gpus=count_accelerators(),
        state="LOCAL",
        switches=(),
    )
    software = {"cpu": read_cpu_name(), "device": read_device().name, "driver": read_driver_version()}
    return Topology(partition, "local", (node,), None, hash_facts((node,), software))


def hash_facts(nodes: tuple[Node, ...], software: dict[str, str]) -> str:
    """First 16 hex digits of a hash of hardware, switches and software; a node's state is not in it."""
    hardware = [[node.name, node.cpus, node.mem_mib, node.gpus, *node.switches] for node in nodes]
    return hash_json({"nodes": hardware, "software": software})[:16]
