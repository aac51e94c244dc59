"""Which implementation of the operators runs: the compiled one, or the reference in plain PyTorch."""

from typing import Literal

from windtunnel.errors import ClusterError
from windtunnel.kernels.schema import HAS_NATIVE, NATIVE, REFERENCE

Backend = Literal["auto", "reference", "cpp"]


def choose_backend(backend: Backend, *, installed: bool = HAS_NATIVE) -> Literal["reference", "cpp"]:
    """What `auto` means here: `cpp` where there is a compiled library. Raises ClusterError for `cpp` without one."""
    if backend == "cpp" and not installed:
        raise ClusterError("kernels.backend=cpp: there are no compiled operators: run `make build`, or choose auto")
    return "cpp" if backend != "reference" and installed else "reference"


def choose_namespace(backend: Backend) -> str:
    """The namespace of `torch.ops` that holds the operators of `backend`."""
    return NATIVE if choose_backend(backend) == "cpp" else REFERENCE
