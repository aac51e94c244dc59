from pathlib import Path

import pytest
import submitit
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobStatus
from omegaconf import OmegaConf
from submitit.core.utils import cloudpickle_dump

from hydra_plugins.windtunnel_launcher._foreign import _read_return

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
