"""The model that every side of the matrix trains; at a forward pass that a case names, it does the case's fault.

So a fault comes at the same moment of the same code, whatever trains the model.
"""

import ctypes
import hashlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

FAULTS = "MATRIX_FAULTS"
"""In the environment: `13:KILL,18:NAN@1`, forward passes of this process from 1, what is done, and by which rank."""
CRASH, FILL = "MATRIX_CRASH", "MATRIX_FILL"
"""Arguments, as JSON lists, of `arm` and of `fill`."""
FEATURES, OUTPUTS, SAMPLES, BATCH = 16, 2, 96, 8


@dataclass(frozen=True)
class Fault:
    """What is done at which forward pass; by every rank where `rank` is None."""

    call: int
    what: str
    """`NAN`, `ARM`, `FILL`, or a signal that the process sends to itself."""
    rank: int | None = None


def parse_faults(text: str) -> tuple[Fault, ...]:
    """The faults of one process."""
    faults = []
    for item in filter(None, text.split(",")):
        call, _, rest = item.partition(":")
        what, _, rank = rest.partition("@")
        faults.append(Fault(int(call), what, int(rank) if rank else None))
    return tuple(faults)


class Net(nn.Module):
    """Three layers. The keywords are those that our trials call a model with; the others leave them out."""

    calls = 0
    """Of all models of this process, in training."""

    def __init__(
        self, n_features: int = FEATURES, n_outputs: int = OUTPUTS, window: int = 1, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        width = 256
        self.layers = nn.Sequential(
            nn.Linear(n_features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, n_outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Of a window (B, T, C) its last row is read."""
        out: Tensor = self.layers(x[:, -1] if x.dim() == 3 else x)
        return out * float("nan") if self.training and act() else out


def act() -> bool:
    """Count a pass and do what is due at it; whether its result becomes NaN."""
    Net.calls += 1
    rank, is_nan = int(os.environ.get("RANK", "0")), False
    for fault in parse_faults(os.environ.get(FAULTS, "")):
        if fault.call != Net.calls or fault.rank not in (None, rank):
            continue
        if fault.what == "NAN":
            is_nan = True
        elif fault.what == "ARM":
            arm(*json.loads(os.environ[CRASH]))
        elif fault.what == "FILL":
            fill(*json.loads(os.environ[FILL]))
        else:
            os.kill(os.getpid(), signal.Signals[f"SIG{fault.what}"])
    return is_nan


def arm(folder: str, log: str, point: int, moment: int) -> None:
    """Let the preloaded library count file operations below a folder, and kill at one."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ctypes.CDLL(None).crash_points_arm(os.fsencode(folder), descriptor, ctypes.c_long(point), moment)


def fill(path: str, left_bytes: int) -> None:
    """Leave only so much room on the file system of `path`, which becomes a file."""
    with open(path, "wb") as file:  # noqa: PTH123
        found = os.fstatvfs(file.fileno())
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - left_bytes)


def make_data() -> tuple[Tensor, Tensor]:
    """Features (SAMPLES, FEATURES) and targets (SAMPLES, OUTPUTS), always the same."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(SAMPLES, FEATURES, generator=generator)
    return x, x[:, :OUTPUTS] + 0.1 * torch.randn(SAMPLES, OUTPUTS, generator=generator)


def digest_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> str:
    """SHA-256 of all weights and of what the optimizer keeps for them."""
    tensors = dict(model.state_dict())
    for index, kept in optimizer.state_dict()["state"].items():
        tensors |= {f"{index}.{name}": torch.as_tensor(value) for name, value in kept.items()}
    return digest_tensors(tensors)


def digest_tensors(tensors: Mapping[str, Any]) -> str:
    """SHA-256 over names and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous().reshape(-1)
        digest.update(name.encode() + tensor.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
