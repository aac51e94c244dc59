"""A copy of the state in memory that is kept for it from one save to the next: all that training waits for."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions


class Stager:
    """What it returns is its own, and good until the next call.

    Plain tensors are copied one by one, which for thousands of them takes a fourth of torch's own stager: that one
    walks through each as through any Python object. It is left the tensors that are more, such as those in shards.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._others = DefaultStager(StagingOptions(torch.cuda.is_available(), False, False, False))

    @torch.no_grad()
    def stage(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A copy in main memory of all tensors as they are now, by the same names."""
        plain = {name: tensor for name, tensor in tensors.items() if type(tensor) in (Tensor, nn.Parameter)}
        self._kept = {name: self._find_room(name, tensor) for name, tensor in plain.items()}
        for name, tensor in plain.items():
            self._kept[name].copy_(tensor, non_blocking=True)
        if any(tensor.device.type != "cpu" for tensor in plain.values()):
            torch.accelerator.synchronize()
        others = self._others.stage({name: tensor for name, tensor in tensors.items() if name not in plain})
        assert isinstance(others, dict), "it is asked to be done on return"
        return {**self._kept, **others}

    def _find_room(self, name: str, tensor: Tensor) -> Tensor:
        kept = self._kept.get(name)
        if kept is not None and (kept.shape, kept.dtype) == (tensor.shape, tensor.dtype):
            return kept
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
