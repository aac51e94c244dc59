"""A copy of the state in memory that is kept for it from one save to the next: all that training waits for."""

import os
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from windtunnel.native.stream import copy_regions, is_available

_MOST_THREADS = 4
"""A few cores take all of a memory's bandwidth."""


class Stager:
    """What it returns is its own, and good until the next call.

    Plain tensors are copied one by one, which for thousands of them takes a fourth of torch's own stager: that one
    walks through each as through any Python object. It is left the tensors that are more, such as those in shards.
    Within main memory they go past the caches, on the cores that the process may use, where the compiled library is.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._others = DefaultStager(StagingOptions(torch.cuda.is_available(), False, False, False))

    @torch.no_grad()
    def stage(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A copy in main memory of all tensors as they are now, by the same names."""
        plain = {name: tensor for name, tensor in tensors.items() if type(tensor) in (Tensor, nn.Parameter)}
        self._kept = {name: self._find_room(name, tensor) for name, tensor in plain.items()}
        _copy_all([(self._kept[name], tensor) for name, tensor in plain.items()])
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


def _copy_all(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Copy into each first tensor what its second one reads."""
    streamed = [_is_plain_memory(source) for _, source in pairs] if is_available() else [False] * len(pairs)
    regions = [
        (target.data_ptr(), source.data_ptr(), source.nbytes)
        for (target, source), plain in zip(pairs, streamed, strict=True)
        if plain
    ]
    copy_regions(regions, threads=min(_MOST_THREADS, len(os.sched_getaffinity(0))))
    for (target, source), plain in zip(pairs, streamed, strict=True):
        if not plain:
            target.copy_(source, non_blocking=True)


def _is_plain_memory(tensor: Tensor) -> bool:
    """Whether its bytes in main memory, in order, are what it reads: a conjugate's or negative's are not."""
    lazy = tensor.is_conj() or tensor.is_neg()
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous() and not lazy
