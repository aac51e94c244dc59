"""The ranks of one trial as a mesh: which device this one uses, how the ranks talk, and along which axes."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from windtunnel.comm.base import Comm
from windtunnel.comm.ranks import RankEnv
from windtunnel.comm.single import SingleComm
from windtunnel.comm.torch import TorchComm, init_process_group
from windtunnel.device.cpu import read_cpu_name
from windtunnel.errors import ClusterError, LayoutError
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.parallelism import ParallelismSettings

_TIMEOUT_S = 300.0
"""For ranks to meet, and for one collective: a node that died without closing its connections is noticed then."""

REPLICATE, SHARD, TENSOR = "replicate", "shard", "tensor"
"""Axes: whole copies of the model, ranks that divide one copy by its parameters, ranks that divide its matrices. The
last varies fastest, so that those that talk most are beside each other."""


@dataclass(frozen=True)
class Mesh:
    """This rank's place; `devices` has the axes `replicate`, `shard` and `tensor`, and is absent when it is alone."""

    rank: int
    world_size: int
    device: torch.device
    comm: Comm
    devices: DeviceMesh | None
    saver_group: dist.ProcessGroup | None = None
    """All ranks over Gloo, for the thread that writes checkpoints while training uses the others."""

    tensor: int = 1
    """Ranks that share each sample; those beside each other do."""

    @property
    def data_rank(self) -> int:
        """Which part of each batch this rank takes."""
        return self.rank // self.tensor

    @property
    def data_size(self) -> int:
        """Parts of a batch."""
        return self.world_size // self.tensor

    @property
    def is_root(self) -> bool:
        """Whether this rank writes for all."""
        return self.rank == 0


def open_mesh(layout: ParallelismSettings, cluster: ClusterSettings, *, env: RankEnv, rendezvous: Path) -> Mesh:
    """Choose the device and join the other ranks; raises LayoutError when the ranks do not fit the layout."""
    check_layout(layout, env)
    device = choose_device(cluster, env)
    if env.world_size == 1:
        return Mesh(env.rank, 1, device, SingleComm(), None)
    init_process_group(rendezvous, env, backend=choose_backend(device), timeout_s=_TIMEOUT_S)
    sizes = (layout.replicas, layout.shard, layout.tensor)
    devices = init_device_mesh(device.type, sizes, mesh_dim_names=(REPLICATE, SHARD, TENSOR))
    group = dist.new_group(backend="gloo")
    return Mesh(env.rank, env.world_size, device, TorchComm(), devices, group, layout.tensor)


def close_mesh() -> None:
    """Leave the other ranks in good order."""
    if dist.is_initialized():
        dist.destroy_process_group()


def check_layout(layout: ParallelismSettings, env: RankEnv) -> None:
    """Raise LayoutError unless training knows the layout, and it has as many ranks as were started."""
    if layout.pipeline > 1:
        raise LayoutError(
            f"parallelism {layout.name!r} asks for pipeline={layout.pipeline}, which training cannot do: set it "
            "to 1, and use parallelism.data, shard or tensor"
        )
    if layout.data % layout.shard:
        raise LayoutError(
            f"parallelism {layout.name!r} divides a model over shard={layout.shard} of data={layout.data} ranks: "
            "set parallelism.shard to a divisor of parallelism.data"
        )
    if layout.ranks != env.world_size:
        raise LayoutError(
            f"parallelism {layout.name!r} needs {layout.ranks} ranks, but {env.world_size} were started: "
            f"start {layout.ranks}, or set parallelism.data={env.world_size}"
        )


def choose_device(cluster: ClusterSettings, env: RankEnv) -> torch.device:
    """The CPU, or this rank's accelerator when the cluster gives ranks any; raises ClusterError without one."""
    if cluster.gpus_per_rank == 0:
        return torch.device("cpu")
    if not torch.accelerator.is_available():
        raise ClusterError(
            f"cluster.gpus_per_rank is {cluster.gpus_per_rank}, but torch {torch.__version__} finds no accelerator "
            f"on {socket.gethostname()}: install a torch built for it, or set cluster.gpus_per_rank=0"
        )
    kind = torch.accelerator.current_accelerator()
    assert kind is not None
    # Where the scheduler binds a device to each rank, every rank sees one and it is number 0.
    device = torch.device(kind.type, env.local_rank % torch.accelerator.device_count())
    torch.accelerator.set_device_index(device.index)
    return device


def choose_backend(device: torch.device) -> str:
    """Gloo, and beside it what torch uses on the accelerator (NCCL on CUDA)."""
    if device.type == "cpu":
        return "gloo"
    return f"cpu:gloo,{device.type}:{dist.get_default_backend_for_device(device)}"


def describe_device(device: torch.device) -> str:
    """The device's model, as its driver or the kernel names it."""
    if device.type != "cpu":
        return str(torch.get_device_module(device).get_device_name(device))
    return read_cpu_name()


def read_host() -> str:
    """This rank's node as the scheduler calls it, else the host's name."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
