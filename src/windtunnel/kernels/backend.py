"""Which implementation of the operators runs: the compiled one, or the reference in plain PyTorch.

Imports no torch.
"""

import os
from typing import Literal, get_args

from windtunnel.errors import ClusterError, SettingsError
from windtunnel.native.library import OPERATORS_FILE
from windtunnel.settings.kernels import Backend

NATIVE = "windtunnel"
REFERENCE = "windtunnel_reference"
HAS_NATIVE = OPERATORS_FILE.exists()
"""Whether compiled operators are installed. Without them the reference serves both namespaces."""
VARIABLE = "WINDTUNNEL_KERNELS"
"""Environment variable that says what `auto` means: a trial's ranks have the trial's `kernels.backend` in it."""


def choose_backend(backend: Backend, *, installed: bool = HAS_NATIVE) -> Literal["reference", "cpp"]:
    """What runs for `backend` here: `auto` asks WINDTUNNEL_KERNELS, and else takes `cpp` where it is installed.

    Raises ClusterError for one that this installation does not have, SettingsError for a name that is none.
    """
    wanted = backend if backend != "auto" else os.environ.get(VARIABLE, "auto")
    if wanted not in get_args(Backend):
        raise SettingsError(f"{VARIABLE}={wanted}: expected one of {', '.join(get_args(Backend))}: set or unset it")
    if wanted in ("triton", "cuda"):
        raise ClusterError(f"kernels.backend={wanted}: no operator has it yet: choose cpp, reference or auto")
    if wanted == "cpp" and not installed:
        raise ClusterError(
            f"kernels.backend=cpp: {OPERATORS_FILE} is not installed: run `make build`, or choose reference or auto"
        )
    return "cpp" if wanted != "reference" and installed else "reference"


def choose_namespace(backend: Backend) -> str:
    """The namespace of `torch.ops` that holds the operators of `backend`."""
    return NATIVE if choose_backend(backend) == "cpp" else REFERENCE
