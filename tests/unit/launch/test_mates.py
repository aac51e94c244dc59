import json
from pathlib import Path

import pytest

from windtunnel.launch.mates import is_wanted, list_mates
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import append_event
from windtunnel.ledger.story import Submission

PACK = Submission("x", 0, "/elsewhere/jobs", ("a", "b"))


def test_a_job_is_wanted_while_another_of_its_trials_may_still_run(tmp_path: Path) -> None:
    submit(tmp_path, "b")
    assert is_wanted(tmp_path, PACK, jobs_dir=tmp_path, but={"a"})
    assert not is_wanted(tmp_path, PACK, jobs_dir=tmp_path, but={"a", "b"})


def test_a_trial_that_was_wished_to_end_before_does_not_want_its_job(tmp_path: Path) -> None:
    append_event(submit(tmp_path, "b"), "cancelling", attempt=0, user="rosa")
    assert not is_wanted(tmp_path, PACK, jobs_dir=tmp_path, but={"a"})


@pytest.mark.parametrize(("verdict", "wanted"), [("PREEMPTED", True), ("NODE_FAIL", True), ("FAILED", False)])
def test_a_trial_that_slurm_will_run_again_wants_its_job(tmp_path: Path, verdict: str, wanted: bool) -> None:
    append_event(submit(tmp_path, "b"), "ended", attempt=1, verdict=verdict)
    assert is_wanted(tmp_path, PACK, jobs_dir=tmp_path, but={"a"}) is wanted


def test_a_trial_that_went_into_another_job_does_not_want_this_one(tmp_path: Path) -> None:
    submit(tmp_path, "b", name="y")
    assert not is_wanted(tmp_path, PACK, jobs_dir=tmp_path, but={"a"})


def test_the_pack_of_an_old_ledger_is_read_from_the_studys_own_folder_of_jobs(tmp_path: Path) -> None:
    commands = [["python", "/s/trials/a", "/s/trials/b"], ["python", "/s/trials/c"]]
    (tmp_path / "x.json").write_text(json.dumps(commands))
    assert list_mates(Submission("x", 0), tmp_path) == ("a", "b")
    assert list_mates(Submission("x", 5), tmp_path) == ()
    assert list_mates(Submission("y", 0), tmp_path) == ()


def submit(store: Path, trial_id: str, *, name: str = "x") -> Path:
    path = trial_folder(store, trial_id).path
    path.mkdir(parents=True)
    append_event(path, "submitting", attempt=0, submission=name, index=0)
    append_event(path, "submitted", attempt=0, submission=name, job_id="7")
    return path
