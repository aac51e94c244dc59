"""One optimizer step, and the optimizer and learning rate that it uses."""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from windtunnel.settings.training import TrainingSettings
from windtunnel.tasks.find import Task
from windtunnel.training.phases import call_after_backward

T = TypeVar("T", bound=Tensor)
_FLOOR = 0.1
"""Share of the peak learning rate that the cosine ends at."""


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW with decoupled weight decay on matrices alone: biases and norms keep their scale."""
    trained = [p for p in model.parameters() if p.requires_grad]
    decays = ([p for p in trained if p.ndim >= 2], settings.weight_decay), ([p for p in trained if p.ndim < 2], 0.0)
    groups = [{"params": alike, "weight_decay": decay} for group, decay in decays for alike in split_alike(group)]
    # The fused form is one pass over each tensor, on the CPU too.
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def learning_rate(step: int, settings: TrainingSettings) -> float:
    """Rate of the step that follows `step` finished ones: linear warm-up to the peak, then a cosine to a tenth."""
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    progress = (step - settings.warmup_steps) / max(1, settings.steps - settings.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return settings.learning_rate * (_FLOOR + (1 - _FLOOR) * cosine)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` in the next step; the rate is a function of the step, so a checkpoint holds none."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def rank_loss(
    model: nn.Module,
    batch: tuple[Tensor, Tensor],
    *,
    task: Task,
    volatility_weight: float,
    batch_size: int,
    context: AbstractContextManager[object],
) -> Tensor:
    """This rank's part of the global batch's mean loss: over all ranks the parts sum to it."""
    x_btc, target_bo = batch
    with context:
        output_bo = model(x_btc)
    losses = task.sample_losses(output_bo.float(), target_bo, volatility_weight=volatility_weight)
    return losses.sum() / batch_size


def compute_gradients(loss: Tensor, *, parts: int, call: Callable[[], None] | None = None) -> None:
    """Backward pass. DDP and FSDP2 average over the parts of a batch; `rank_loss` needs their sum.

    `call` is made when all gradients are computed, before any wait for other ranks' own.
    """
    whole = loss * parts if parts > 1 else loss
    if call is not None:
        call_after_backward(whole, call)
    whole.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped


def gradient_norm(model: nn.Module) -> float:
    """Norm over all gradients; waits for the device, and where they are divided for all ranks."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norms = [torch.nn.utils.get_total_norm(alike) for alike in split_alike(gradients)]
    return float(torch.stack([n.full_tensor() if isinstance(n, DTensor) else n for n in norms]).norm())


def split_alike(tensors: Iterable[T]) -> list[list[T]]:
    """Tensors by the ranks that they are divided over, in order: torch's operators on lists take no mixture."""
    alike: dict[object, list[T]] = {}
    for tensor in tensors:
        alike.setdefault(tensor.device_mesh if isinstance(tensor, DTensor) else None, []).append(tensor)
    return list(alike.values())
