"""What a rank's memory holds: weights, gradients, optimizer and activations by their tensors, and the peak."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from windtunnel.records.meter import RankMemory


class Saved:
    """Bytes that a forward pass keeps for its backward pass, counted while inside `watch`; each storage once."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.bytes: int | None = None
        """None before the first pass that was watched."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count what is inside; it computes the same."""
        # A tensor of the model's own is kept anyway; by address, since a storage is another object each time.
        known = {_address(tensor) for tensor in (*self._model.parameters(), *self._model.buffers())}
        found: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            if _address(tensor) not in known:
                found[_address(tensor)] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, _keep):
            yield
        self.bytes = sum(found.values())


def read_memory(
    model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device, *, saved: Saved
) -> RankMemory:
    """Of this rank after a step, whose gradients are still there."""
    parameters = list(model.parameters())
    state = [value for held in optimizer.state.values() for value in held.values() if isinstance(value, Tensor)]
    accelerated = device.type != "cpu"
    return RankMemory(
        weights_bytes=_size([*parameters, *model.buffers()]),
        gradients_bytes=_size(p.grad for p in parameters if p.grad is not None),
        optimizer_bytes=_size(state),
        activations_bytes=saved.bytes,
        peak_bytes=torch.accelerator.max_memory_allocated(device) if accelerated else read_peak_resident(),
        allocated_bytes=torch.accelerator.memory_allocated(device) if accelerated else None,
        reserved_bytes=torch.accelerator.memory_reserved(device) if accelerated else None,
    )


def read_peak_resident() -> int:
    """Largest resident size of this process; getrusage would count what it was forked from."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux gives every process a VmHWM")


def _size(tensors: Iterable[Tensor]) -> int:
    """Bytes that this rank holds of them; of a divided tensor its own part, and what shares a storage once."""
    local = [_local(tensor) for tensor in tensors]
    return sum({_address(tensor): tensor.untyped_storage().nbytes() for tensor in local}.values())


def _local(tensor: Any) -> Tensor:
    local: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local


def _address(tensor: Tensor) -> int:
    return int(_local(tensor).untyped_storage().data_ptr())


def _keep(tensor: Any) -> Any:
    return tensor
