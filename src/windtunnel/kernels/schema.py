"""Defines the operators of `torch.ops.windtunnel`, and twins in plain PyTorch in `torch.ops.windtunnel_reference`.

The compiled library binds its code to the former as it is loaded; where there is none, the reference serves both.
"""

from collections.abc import Callable
from typing import Any

import torch

from windtunnel.kernels.backend import HAS_NATIVE, NATIVE, REFERENCE
from windtunnel.native.library import OPERATORS_FILE


def load_native() -> None:
    """Load the compiled operators where there are any. Raises OSError for a library that does not load."""
    if HAS_NATIVE:
        torch.ops.load_library(str(OPERATORS_FILE))  # type: ignore[no-untyped-call]  # torch gives it no types


def define_operator(name: str, arguments: str, *, reference: Callable[..., Any], fake: Callable[..., Any]) -> None:
    """Define `name` in both namespaces; `arguments` is its schema from the opening bracket on."""
    for namespace in (NATIVE, REFERENCE):
        qualified = f"{namespace}::{name}"
        torch.library.define(qualified, arguments)
        torch.library.register_fake(qualified, fake)
        if namespace == REFERENCE or not HAS_NATIVE:
            torch.library.impl(qualified, "CPU")(reference)


def define_gradient(name: str, backward: Callable[..., Any], save: Callable[..., None]) -> None:
    """Give `name` its derivative in both namespaces: `backward(namespace, context, gradient)`."""
    for namespace in (NATIVE, REFERENCE):

        def run_backward(context: Any, gradient: torch.Tensor, namespace: str = namespace) -> Any:
            return backward(namespace, context, gradient)

        torch.library.register_autograd(f"{namespace}::{name}", run_backward, setup_context=save)
