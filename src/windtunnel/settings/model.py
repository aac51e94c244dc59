"""Settings of a model: a class anywhere on the import path, and its arguments."""

from typing import Any

from pydantic import ConfigDict, Field

from windtunnel.settings.base import Settings


class ModelSettings(Settings):
    # Unlike every other group, a model's arguments are whatever its class takes; they are checked
    # against its signature when the model is traced, before anything is submitted.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Name in rankings and plots."""
    target: str = Field(alias="_target_", pattern=r"^[A-Za-z_][\w.]*\.[A-Za-z_]\w*$")
    """Dotted path of the `nn.Module` class. It is called with `n_features`, `n_outputs`, `window` and each
    key of `args` as a keyword, and maps float32 (batch, window, n_features) to (batch, n_outputs)."""
    args: dict[str, Any] = {}
    """The class's own keyword arguments."""
