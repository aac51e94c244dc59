from omegaconf import DictConfig, OmegaConf

from hydra_plugins.windtunnel_launcher._composed import ComposedOnce

MASTER = OmegaConf.create({})


class Loader:
    """Hydra's, as far as a launcher uses it."""

    def __init__(self) -> None:
        self.composed: list[str] = []

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        self.composed += sweep_overrides
        return OmegaConf.create({"value": sweep_overrides})

    def list_groups(self) -> list[str]:
        return ["model"]


def test_what_the_sweeper_composed_is_not_composed_again() -> None:
    loader = Loader()
    once = ComposedOnce(loader)  # type: ignore[arg-type]
    checked = once.load_sweep_config(MASTER, ["a=1"])
    assert once.take(MASTER, ["a=1"]) is checked
    assert loader.composed == ["a=1"]


def test_a_configuration_is_handed_out_once() -> None:
    once = ComposedOnce(Loader())  # type: ignore[arg-type]
    once.load_sweep_config(MASTER, ["a=1"])
    assert once.take(MASTER, ["a=1"]) is not once.take(MASTER, ["a=1"])


def test_another_multirun_gets_its_own() -> None:
    loader = Loader()
    once = ComposedOnce(loader)  # type: ignore[arg-type]
    once.load_sweep_config(MASTER, ["a=1"])
    once.take(OmegaConf.create({"other": 1}), ["a=1"])
    assert loader.composed == ["a=1", "a=1"]


def test_all_else_is_the_loaders_own() -> None:
    assert ComposedOnce(Loader()).list_groups() == ["model"]  # type: ignore[arg-type]
