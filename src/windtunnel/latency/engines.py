"""Ways to run a trained model on one sample. So far one: eager PyTorch in the trial's own precision."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Engine = Callable[[Tensor], Tensor]


def make_eager(model: nn.Module, *, precision: str, device: torch.device) -> Engine:
    """A function from a float32 sample (1, window, n_features) on the host to its outputs on the host.

    Weights are cast once, as a server would; a sample's way to the device and back is part of a call.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    served = model.to(device=device, dtype=dtype).eval()

    @torch.inference_mode()
    def infer(x_btc: Tensor) -> Tensor:
        output: Tensor = served(x_btc.to(device=device, dtype=dtype))
        return output.to(device="cpu", dtype=torch.float32)

    return infer


def draw_samples(count: int, *, window: int, n_features: int, seed: int = 0) -> list[Tensor]:
    """Standard normal windows, as scaled features are; the same for every model."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, window, n_features, generator=generator) for _ in range(count)]
