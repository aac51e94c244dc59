"""Jobs' configurations that a sweeper composed only to check them: composing takes as long as starting a process."""

from collections.abc import Sequence
from typing import Any

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig

_MOST = 512


class ComposedOnce:
    """Stands for Hydra's own loader in a sweeper. Each configuration that it composed is handed out once."""

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader
        self._composed: dict[tuple[str, ...], tuple[DictConfig, DictConfig]] = {}

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """As Hydra's own; what is composed is kept for `take`."""
        config = self._loader.load_sweep_config(master_config, sweep_overrides)
        if len(self._composed) < _MOST:
            self._composed[tuple(sweep_overrides)] = master_config, config
        return config

    def take(self, master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
        """The job's configuration, composed now unless it was a moment ago."""
        master, config = self._composed.pop(tuple(sweep_overrides), (None, None))
        if config is not None and master is master_config:
            return config
        return self._loader.load_sweep_config(master_config, list(sweep_overrides))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
