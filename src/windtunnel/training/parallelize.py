"""Applies a parallel layout to a plain model. Model files never mention parallelism; this is the one place.

Order of techniques: the model is on its device; tensor parallelism divides its matrices; then data parallelism wraps
it whole (DDP), or divides its blocks and then what is left of it (FSDP2, HSDP).
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from windtunnel.settings.parallelism import ParallelismSettings
from windtunnel.training.mesh import REPLICATE, SHARD, TENSOR, Mesh
from windtunnel.training.tensor import divide_tensors


def parallelize(model: nn.Module, *, layout: ParallelismSettings, mesh: Mesh, sample_x: Tensor) -> nn.Module:
    """`model` as this rank trains it: itself when alone, under DDP, or itself with its parameters divided."""
    if mesh.devices is None:
        return model
    if layout.tensor > 1:
        divide_tensors(model, mesh.devices[TENSOR])
    if layout.data == 1:
        return model
    if layout.shard > 1 or layout.tensor > 1:  # DDP takes no divided tensors; copies of one rank each are the same
        return shard_model(model, layout=layout, mesh=mesh)
    wrapped = DistributedDataParallel(
        model, process_group=mesh.devices.get_group(REPLICATE), gradient_as_bucket_view=True
    )
    settle_buckets(wrapped, sample_x)
    return wrapped


def shard_model(model: nn.Module, *, layout: ParallelismSettings, mesh: Mesh) -> nn.Module:
    """The same module, whose parameters are this rank's parts of them; each block gathers its own when it runs."""
    assert mesh.devices is not None
    devices = mesh.devices[SHARD] if layout.replicas == 1 else mesh.devices[REPLICATE, SHARD]
    for block in find_blocks(model):
        fully_shard(block, mesh=devices, reshard_after_forward=layout.reshard)
    fully_shard(model, mesh=devices, reshard_after_forward=layout.reshard)
    return model


@contextmanager
def hold_sums(wrapped: nn.Module) -> Iterator[None]:
    """Passes inside add to this rank's own gradients; the next one after sums all of them over ranks."""
    if isinstance(wrapped, DistributedDataParallel):
        with wrapped.no_sync():
            yield
    elif isinstance(wrapped, FSDPModule):
        wrapped.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            wrapped.set_requires_gradient_sync(True)
    else:
        yield


def find_blocks(model: nn.Module) -> Iterator[nn.Module]:
    """The units that a model repeats: members of its lists and sequences that are several of one class."""
    for child in model.children():
        members = list(child.children()) if isinstance(child, nn.Sequential | nn.ModuleList) else []
        if len(members) > 1 and len({type(member) for member in members}) == 1:
            yield from members
        else:
            yield from find_blocks(child)


def settle_buckets(wrapped: DistributedDataParallel, sample_x: Tensor) -> None:
    """Run one backward pass whose result is thrown away, so that DDP's buckets are final before the first step.

    DDP regroups gradients after its first backward pass, by the order in which they came. A run that resumes
    would sum its first step in other groups than the run that it continues, and differ from it in the last bit.
    """
    buffers = copy.deepcopy(list(wrapped.module.buffers()))
    wrapped(sample_x).sum().backward()
    wrapped.zero_grad(set_to_none=True)
    with torch.no_grad():
        for buffer, before in zip(wrapped.module.buffers(), buffers, strict=True):
            buffer.copy_(before)
