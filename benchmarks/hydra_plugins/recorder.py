"""A Hydra sweeper as a user's would be: it takes the results that the launcher hands back, and writes them down."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher


class RecordingSweeper(BasicSweeper):
    """Hydra's basic sweeper; the values of the jobs that came back completed are left in the sweep's folder."""

    def __init__(self, returned: str, **given: Any) -> None:
        super().__init__(**given)
        self._returned = returned

    def setup(self, **given: Any) -> None:
        super().setup(**given)
        self.launcher = Recorder(self.launcher, Path(str(given["config"].hydra.sweep.dir)) / self._returned)


class Recorder:
    """A launcher as the sweeper sees it."""

    def __init__(self, launcher: Launcher, path: Path) -> None:
        self._launcher = launcher
        self._path = path

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        returned = self._launcher.launch(job_overrides, initial_job_idx=initial_job_idx)
        values = [job.return_value for job in returned if job.status == JobStatus.COMPLETED]
        self._path.write_text(json.dumps(values))
        return returned


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="recorder",
    node={"_target_": f"{__name__}.RecordingSweeper", "max_batch_size": None, "params": None, "returned": "???"},
)
