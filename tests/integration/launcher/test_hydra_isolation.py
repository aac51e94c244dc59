import os
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize
from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import JobStatus
from hydra.types import HydraContext
from omegaconf import DictConfig, open_dict

from hydra_plugins.windtunnel_launcher._foreign import ForeignTask, run_foreign
from hydra_plugins.windtunnel_launcher.launcher import LauncherConf
from windtunnel.errors import CommandError, SettingsError


def behave(config: DictConfig) -> int:
    if config.a == 1:
        raise ValueError("no such loss")
    if config.a == 2:
        os._exit(3)
    return int(config.a) * 10


def launch(tmp_path: Path, **places: Any) -> list[Any]:
    with initialize(version_base="1.3", config_path=None):
        configs = [_config(tmp_path, index) for index in range(4)]
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        task = ForeignTask(HydraContext(hydra.config_loader, Callbacks()), behave)
        return run_foreign(task, configs, places={**vars(LauncherConf()), **places}, sweep_dir=tmp_path)


@pytest.mark.usefixtures("hydra_restore_singletons")
def test_one_dead_job_costs_no_others_result(tmp_path: Path) -> None:
    returned = launch(tmp_path, jobs_at_once=2)
    assert [each.status for each in returned] == [
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.FAILED,
        JobStatus.COMPLETED,
    ]
    assert (returned[0].return_value, returned[3].return_value) == (0, 30)
    with pytest.raises(ValueError, match="no such loss"):
        returned[1].return_value  # noqa: B018 - a failed job's value raises its cause
    with pytest.raises(CommandError, match="ended without a result"):
        returned[2].return_value  # noqa: B018
    assert returned[2].overrides == ["+a=2"]


@pytest.mark.usefixtures("hydra_restore_singletons")
def test_slurm_without_a_partition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"set hydra\.launcher\.partition"):
        launch(tmp_path, kind="slurm")


def _config(sweep_dir: Path, index: int) -> DictConfig:
    config = compose(overrides=[f"+a={index}", f"hydra.sweep.dir={sweep_dir}"], return_hydra_config=True)
    with open_dict(config):
        config.hydra.job.id = str(index)
        config.hydra.job.num = index
        config.hydra.job.name = "test"
        config.hydra.runtime.output_dir = str(sweep_dir)
        config.hydra.runtime.cwd = str(sweep_dir)
        config.hydra.runtime.config_sources = []
        config.hydra.runtime.choices = {}
        config.hydra.runtime.version = "1.3"
    return config
