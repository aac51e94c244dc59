import json
from pathlib import Path

import pytest

from windtunnel.cli.dead_driver import free_dead_driver
from windtunnel.ledger.lease import read_live_holder, take_lease
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.records.trial import Verdict


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of which a job on another host holds both leases."""
    for name in (".driver", ".lease"):
        take_lease(tmp_path / name, "study mine", job_id="7")
        path = tmp_path / name / "1"
        path.write_text(json.dumps({**json.loads(path.read_text()), "host": "elsewhere"}))
    return tmp_path


def holders(study: Path) -> list[str]:
    found = [read_live_holder(study / name) for name in (".driver", ".lease")]
    return [holder.job_id for holder in found if holder is not None]


@pytest.mark.parametrize("verdict", [Verdict.CANCELLED, Verdict.TIMEOUT, None])
def test_a_driver_whose_job_has_ended_keeps_nobody_away(study: Path, verdict: Verdict | None) -> None:
    free_dead_driver(study, look=lambda _: JobSight(Phase.ENDED, verdict))
    assert holders(study) == []
    take_lease(study / ".driver", "study mine")


@pytest.mark.parametrize(
    "sight", [JobSight(Phase.RUNNING), JobSight(Phase.QUEUED), JobSight(Phase.ENDED, Verdict.NODE_FAIL), UNSEEN]
)
def test_a_driver_that_may_live_is_left_alone(study: Path, sight: JobSight) -> None:
    free_dead_driver(study, look=lambda _: sight)
    assert holders(study) == ["7", "7"]


def test_slurm_is_not_asked_of_a_driver_that_is_no_job_or_is_on_this_host(tmp_path: Path) -> None:
    def look(_: str) -> JobSight:
        raise AssertionError("the process table knows")

    take_lease(tmp_path / ".driver", "study mine", job_id="7")
    take_lease(tmp_path / ".lease", "study mine")
    free_dead_driver(tmp_path, look=look)
    assert holders(tmp_path) == ["7", ""]
