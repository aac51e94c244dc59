"""From a model's settings to its module: imports the class that `_target_` names and checks its arguments."""

import importlib
import inspect
from typing import Any

from torch import nn

from windtunnel.errors import SettingsError
from windtunnel.settings.model import ModelSettings


def build_model(settings: ModelSettings, *, n_features: int, n_outputs: int, window: int) -> nn.Module:
    """The model of `settings`, initialised from torch's current random state.

    Raises SettingsError when `_target_` is no importable `nn.Module` class or does not take `args`.
    """
    kind = find_class(settings.target)
    arguments = {"n_features": n_features, "n_outputs": n_outputs, "window": window, **settings.args}
    check_arguments(kind, arguments, settings)
    return kind(**arguments)


def find_class(target: str) -> type[nn.Module]:
    """The `nn.Module` class at a dotted path; raises SettingsError naming the part that is wrong."""
    module_name, _, class_name = target.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise SettingsError(
            f"model _target_ {target!r}: cannot import {module_name!r} ({error}): "
            "give the dotted path of a class in an installed package or in your project's folder"
        ) from error
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        known = ", ".join(sorted(_module_classes(module))) or "none"
        raise SettingsError(f"model _target_ {target!r} is not an nn.Module class; {module_name!r} has: {known}")
    return kind


def check_arguments(kind: type[nn.Module], arguments: dict[str, Any], settings: ModelSettings) -> None:
    """Raise SettingsError when the class would refuse its keyword arguments."""
    signature = inspect.signature(kind)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise SettingsError(
            f"model {settings.name!r}: {settings.target}{signature} does not take these arguments ({error}): "
            "it is called with n_features, n_outputs, window and model.args"
        ) from error


def _module_classes(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == module.__name__
    ]
