"""Hydra's own suites for launchers, run on ours."""

import pytest
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.test_utils.launcher_common_tests import IntegrationTestSuite, LauncherTestSuite

from hydra_plugins.windtunnel_launcher.launcher import WindtunnelLauncher


def test_hydra_finds_the_launcher() -> None:
    assert WindtunnelLauncher.__name__ in [found.__name__ for found in Plugins.instance().discover(Launcher)]


@pytest.mark.parametrize(("launcher_name", "overrides"), [("windtunnel", [])])
class TestWindtunnelLauncher(LauncherTestSuite):
    pass


@pytest.mark.parametrize(("task_launcher_cfg", "extra_flags"), [({}, ["-m", "hydra/launcher=windtunnel"])])
class TestWindtunnelLauncherIntegration(IntegrationTestSuite):
    pass
