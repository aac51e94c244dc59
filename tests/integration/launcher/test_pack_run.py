"""Several trials in one job, with real supervisors and fake ranks; the job is this process."""

import os
import signal
import subprocess
import time
from pathlib import Path

from fake_trials import RANK, SUPERVISOR, make_trial, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.pack import run_pack
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import read_events
from windtunnel.records.trial import AttemptEnd, Verdict

DEADLINE_S = 60


def test_one_that_fails_costs_no_other(tmp_path: Path) -> None:
    folders = [write(tmp_path, "a"), write(tmp_path, "b", behaviour="fail"), write(tmp_path, "c")]
    assert run_pack([folder.path for folder in folders], rank_command=RANK) == 1
    assert [end_of(folder) for folder in folders] == [Verdict.COMPLETED, Verdict.FAILED, Verdict.COMPLETED]
    assert kinds(folders[0]) == ["started", "ended"]
    assert [kinds(folder) for folder in folders[1:]] == [["waiting", "started", "ended"]] * 2


def test_a_trial_whose_records_are_damaged_costs_no_other(tmp_path: Path) -> None:
    folders = [write(tmp_path, "a"), write(tmp_path, "b")]
    folders[0].config.write_text("{")
    assert run_pack([folder.path for folder in folders], rank_command=RANK) == 1
    assert end_of(folders[1]) == Verdict.COMPLETED


def test_each_is_held_to_its_own_time_limit(tmp_path: Path) -> None:
    folders = [write(tmp_path, "a", behaviour="hang", time_min=0), write(tmp_path, "b")]
    assert run_pack([folder.path for folder in folders], rank_command=RANK) == 1
    assert [end_of(folder) for folder in folders] == [Verdict.TIMEOUT, Verdict.COMPLETED]


def test_a_signal_leaves_the_rest_to_the_next_job_which_does_not_repeat_what_ended(tmp_path: Path) -> None:
    folders = [write(tmp_path, "a", behaviour="fail"), write(tmp_path, "b", behaviour="hang"), write(tmp_path, "c")]
    job = subprocess.Popen([*SUPERVISOR, *(str(folder.path) for folder in folders)], start_new_session=True)
    wait_for_start(folders[1])
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(DEADLINE_S) == 1
    assert end_of(folders[1]) == Verdict.CANCELLED  # of a local job, which nobody starts again
    assert kinds(folders[2]) == ["waiting"]
    assert run_pack([folders[0].path, folders[2].path], rank_command=RANK) == 0
    assert kinds(folders[0]) == ["started", "ended"]
    assert end_of(folders[2]) == Verdict.COMPLETED


def write(store: Path, name: str, **details: object) -> TrialFolder:
    return write_trial(store, make_trial(name, **details))  # type: ignore[arg-type]


def end_of(folder: TrialFolder) -> Verdict:
    return read_artifact(folder.end(1), AttemptEnd).verdict


def kinds(folder: TrialFolder) -> list[str]:
    return [event.kind for event in read_events(folder.path)]


def wait_for_start(folder: TrialFolder) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not (folder.rank_log(1, 0).exists() and folder.rank_log(1, 0).read_text()):
        assert time.monotonic() < deadline, f"{folder.path} did not start in {DEADLINE_S} s"
        time.sleep(0.05)
