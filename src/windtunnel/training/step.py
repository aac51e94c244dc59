"""One optimizer step, and the optimizer and learning rate that it uses."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from windtunnel.settings.training import TrainingSettings
from windtunnel.tasks.find import Task
from windtunnel.training.phases import call_after_backward

_FLOOR = 0.1
"""Share of the peak learning rate that the cosine ends at."""


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW with decoupled weight decay on matrices alone: biases and norms keep their scale."""
    decayed = [p for p in model.parameters() if p.requires_grad and p.ndim >= 2]
    plain = [p for p in model.parameters() if p.requires_grad and p.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    # The fused form is one pass over each tensor, on the CPU too.
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.learning_rate, fused=True)


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


def compute_gradients(loss: Tensor, *, world_size: int, call: Callable[[], None] | None = None) -> None:
    """Backward pass. DDP and FSDP2 average over ranks; times their number it is the sum that `rank_loss` needs.

    `call` is made when all gradients are computed, before any wait for other ranks' own.
    """
    whole = loss * world_size if world_size > 1 else loss
    if call is not None:
        call_after_backward(whole, call)
    whole.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped


def gradient_norm(model: nn.Module) -> float:
    """Norm over all gradients; waits for the device, and where they are divided for all ranks."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)
