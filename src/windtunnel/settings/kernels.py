"""Settings of the time-series kernels."""

from typing import Literal

from windtunnel.settings.base import Settings

Backend = Literal["auto", "reference", "cpp", "triton", "cuda"]


class KernelSettings(Settings):
    backend: Backend = "auto"
    """What runs the time-series operators, in features and in models: `cpp`, the compiled library; `reference`, plain
    PyTorch; `auto`, the former where it is installed. There are no operators for `triton` and `cuda` yet."""
