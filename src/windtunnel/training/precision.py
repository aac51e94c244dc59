"""Arithmetic: what runs in bf16, and what makes two runs of one trial the same to the last bit."""

import random
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch.utils import deterministic

from windtunnel.settings.study import TrialSettings
from windtunnel.settings.training import TrainingSettings


def autocast(settings: TrainingSettings, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass: bf16 autocast over fp32 weights, or nothing."""
    if settings.precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def derive_seed(settings: TrialSettings) -> int:
    """Seed of a trial; repeats of one combination differ in it, so that their spread is that of the training."""
    return int(np.random.SeedSequence([settings.seed, settings.repeat]).generate_state(1)[0])


def seed_generators(seed: int) -> None:
    """Seed torch's generators, and Python's and numpy's own, which a user's model may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def set_arithmetic(settings: TrainingSettings) -> None:
    """Fix the threads (they divide sums) and refuse operators without a deterministic form."""
    torch.set_num_threads(settings.threads_per_rank)
    torch.use_deterministic_algorithms(True)
    # Filling every new tensor finds reads of uninitialised memory; it costs time and changes no result here.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # set through a module property
