import re
from dataclasses import asdict
from pathlib import Path

import pytest
import submitit
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobStatus
from omegaconf import OmegaConf
from submitit.core.utils import cloudpickle_dump

from hydra_plugins.windtunnel_launcher._foreign import _read_return, read_places
from hydra_plugins.windtunnel_launcher.launcher import LauncherConf
from windtunnel.errors import SettingsError

CONFIG = OmegaConf.create({"hydra": OmegaConf.structured(HydraConf)})


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "submitit.LocalJob[object]":
    """A job of this machine that has ended; nothing of it is written yet."""
    monkeypatch.setattr(Singleton, "_instances", {})
    HydraConfig.instance()
    return submitit.LocalJob(tmp_path, "7", tasks=[0])


@pytest.mark.parametrize("trace", ["", " \n\n"])
def test_a_job_that_failed_without_a_word_says_so(job: "submitit.LocalJob[object]", trace: str) -> None:
    cloudpickle_dump(("error", trace), job.paths.result_pickle)
    returned = _read_return(job, CONFIG)
    assert returned.status == JobStatus.FAILED
    assert str(returned._return_value) == "job 7 failed: it gave no reason"


@pytest.mark.parametrize(
    ("stderr", "stdout", "words"),
    [("", "", "it wrote nothing"), ("\n \n", "almost\n", "almost"), ("first\nlast \n\n", "out", "last")],
)
def test_a_job_without_a_result_is_told_by_its_last_words(
    job: "submitit.LocalJob[object]", stderr: str, stdout: str, words: str
) -> None:
    job.paths.stderr.write_text(stderr)
    job.paths.stdout.write_text(stdout)
    returned = _read_return(job, CONFIG)
    assert str(returned._return_value) == f"job 7 ended without a result: {words}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"poll_s": float("nan")}, "hydra.launcher: setting 'poll_s' = nan"),
        ({"poll_s": float("inf")}, "hydra.launcher: setting 'poll_s' = inf"),
        ({"poll_s": 1e12}, "hydra.launcher: setting 'poll_s' = 1000000000000.0"),
        ({"poll_s": 0.0}, "hydra.launcher: setting 'poll_s' = 0.0"),
        ({"jobs_at_once": 0}, "hydra.launcher: setting 'jobs_at_once' = 0"),
        ({"cpus": 0}, "hydra.launcher: setting 'cpus' = 0"),
    ],
)
def test_numbers_that_would_make_jobs_wait_for_ever_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        read_places({**asdict(LauncherConf()), **changes})


def test_the_launchers_own_settings_are_taken() -> None:
    shape, cluster, limits = read_places({**asdict(LauncherConf()), "cpus": 3})
    assert (shape.cpus_per_rank, cluster.kind, limits.poll_s) == (3, "local", 30.0)
