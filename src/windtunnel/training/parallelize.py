"""Applies a parallel layout to a plain model. Model files never mention parallelism; this is the one place.

Order of techniques: the model is on its device, then data parallelism wraps it.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from windtunnel.settings.parallelism import ParallelismSettings
from windtunnel.training.mesh import Mesh


def parallelize(model: nn.Module, *, layout: ParallelismSettings, mesh: Mesh, sample_x: Tensor) -> nn.Module:
    """`model` as this rank trains it: itself when alone, under DDP among several ranks."""
    if layout.data == 1 or mesh.devices is None:
        return model
    group = mesh.devices.get_group("data")
    wrapped = DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)
    settle_buckets(wrapped, sample_x)
    return wrapped


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
