"""What a testbed is: its size, its switches and links, and where its files lie. Values only."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import ClusterError

# Every testbed lives in network namespaces of its own, so all of them can use the same addresses.
NETWORK = "10.77"
PREFIX_BITS = 16
SPINE = "spine"
FABRIC = "fabric"
MAX_NODES = 200
MAX_GPUS = 16
# Unix sockets hold 107 characters; the longest of ours adds about 40 (spool/n199/n199_<job>.<step>).
MAX_FOLDER_CHARS = 64


@dataclass(frozen=True)
class Ports:
    """TCP ports; without namespaces node i listens on `node + i`."""

    controller: int = 6817
    database: int = 6819
    node: int = 6820


@dataclass(frozen=True)
class ClusterSpec:
    """A testbed as asked for, with every choice made."""

    folder: Path
    user: str
    machine: str
    """This machine's host name, which the controller has where there are no namespaces."""
    nodes: int = 8
    leaves: int = 2
    gpus: int = 0
    cpus: int = 8
    memory_mib: int = 16000
    accounting: bool = True
    network: bool = True
    """Namespaces and shaped links; without them all nodes share this machine's loopback."""
    interleave: bool = True
    node_mbit: int = 1000
    leaf_mbit: int = 200
    fast_timings: bool = True
    """Short timeouts, so that a requeued job starts within seconds; otherwise Slurm's own defaults."""
    ports: Ports = Ports()


@dataclass(frozen=True)
class Host:
    """One virtual machine: the login host (on the spine) or a compute node (on its leaf)."""

    name: str
    address: str
    switch: str


def check_spec(spec: ClusterSpec) -> None:
    """Raise ClusterError for a size that cannot be built, or a folder too long for sockets."""
    for option, value, low, high in (
        ("nodes", spec.nodes, 1, MAX_NODES),
        ("leaves", spec.leaves, 1, spec.nodes),
        ("gpus", spec.gpus, 0, MAX_GPUS),
        ("cpus", spec.cpus, 1, 1024),
        ("memory-mib", spec.memory_mib, 100, 1 << 24),
        ("node-mbit", spec.node_mbit, 0, 1_000_000),
        ("leaf-mbit", spec.leaf_mbit, 0, 1_000_000),
    ):
        if not low <= value <= high:
            raise ClusterError(f"--{option} is {value}, expected {low} to {high}")
    if len(str(spec.folder)) > MAX_FOLDER_CHARS:
        raise ClusterError(
            f"--dir {spec.folder} has {len(str(spec.folder))} characters, expected at most {MAX_FOLDER_CHARS} "
            "(its sockets must fit the system's limit): choose a shorter one"
        )
    if any(character.isspace() or character in "\"'\\#%[],=" for character in str(spec.folder)):
        raise ClusterError(f"--dir {str(spec.folder)!r} holds a character that Slurm's files cannot: choose another")


def cluster_name(folder: Path) -> str:
    """Slurm's name of the cluster: jobs carry it in their environment, so it tells testbeds apart."""
    return "wt" + hashlib.sha256(str(folder).encode()).hexdigest()[:8]


def leaf_names(spec: ClusterSpec) -> tuple[str, ...]:
    """The switches below the spine."""
    return tuple(f"leaf{index}" for index in range(spec.leaves))


def login_host(spec: ClusterSpec) -> Host:
    """The host of the controller and of `testbed run`."""
    if not spec.network:
        return Host(spec.machine, "127.0.0.1", SPINE)
    return Host("login", f"{NETWORK}.0.1", SPINE)


def node_hosts(spec: ClusterSpec) -> tuple[Host, ...]:
    """The compute nodes: interleaved over the leaves (n0 leaf0, n1 leaf1, ...) or in one block a leaf."""
    return tuple(
        Host(
            f"n{index}",
            f"{NETWORK}.1.{index + 1}" if spec.network else "127.0.0.1",
            f"leaf{index % spec.leaves if spec.interleave else index * spec.leaves // spec.nodes}",
        )
        for index in range(spec.nodes)
    )


def all_hosts(spec: ClusterSpec) -> tuple[Host, ...]:
    """The login host, then the nodes."""
    return (login_host(spec), *node_hosts(spec))
