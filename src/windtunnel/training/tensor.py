"""Tensor parallelism with sequence parallelism: how ranks divide the matrices of a model, by its blocks' class.

Between blocks each rank holds its rows of every window; within a block its heads, or its columns of the feed-forward
layer. So the collectives of a block are a gathering of rows before each pair of matrices, and a sum that leaves each
rank its rows after it, in both directions. What lies outside the blocks is computed alike on all of these ranks.
"""

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from windtunnel.errors import LayoutError
from windtunnel.models.transformer import CausalTransformer

_ROWS = Shard(1)


def divide_tensors(model: nn.Module, devices: DeviceMesh) -> None:
    """Turn the parameters of the model's blocks into this rank's parts; raises LayoutError where it has no form."""
    if not isinstance(model, CausalTransformer):
        raise LayoutError(
            f"{type(model).__name__} has no tensor-parallel form: set parallelism.tensor=1, or use a transformer"
        )
    for block in model.blocks:
        parallelize_module(block, devices, _plan_block())
    parallelize_module(model, devices, {"blocks": _divide_rows()})


def _plan_block() -> dict[str, ParallelStyle]:
    gather_rows = PrepareModuleInput(
        input_layouts=(_ROWS,), desired_input_layouts=(Replicate(),), use_local_output=True
    )
    return {
        "attention_norm": SequenceParallel(use_local_output=True),
        "attention": gather_rows,
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=_ROWS),
        "feed_norm": SequenceParallel(use_local_output=True),
        "feed_in": ColwiseParallel(input_layouts=_ROWS),
        "feed_out": RowwiseParallel(output_layouts=_ROWS),
    }


def _divide_rows() -> ParallelStyle:
    return PrepareModuleInputOutput(
        input_layouts=(Replicate(),),
        desired_input_layouts=(_ROWS,),
        use_local_input=True,
        output_layouts=(_ROWS,),
        desired_output_layouts=(Replicate(),),
        use_local_output=True,
    )
