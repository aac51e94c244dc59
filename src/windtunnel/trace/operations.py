"""Records the operators of a forward pass: names, shapes and floating-point operations."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from windtunnel.records.cluster import Operation


class OperationRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves its modes untyped
    """A mode that keeps each operator call below it, in order."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        formula = flop_registry.get(func._overloadpacket)
        flops = int(formula(*args, **kwargs, out_val=out)) if formula is not None else 0
        shapes = _shapes([*args, *kwargs.values()]), _shapes(out)
        self.operations.append(Operation(str(func), *shapes, flops))
        return out


def _shapes(values: Any) -> tuple[tuple[int, ...], ...]:
    """Shapes of the tensors in a nest of lists, in order."""
    if isinstance(values, torch.Tensor):
        return (tuple(values.shape),)
    if isinstance(values, list | tuple):
        return tuple(shape for value in values for shape in _shapes(value))
    return ()
