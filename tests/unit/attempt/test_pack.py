import json
from pathlib import Path

import pytest

from fake_disk import at_most_bytes
from fake_trials import RANK, make_outcome, make_trial, write_trial
from windtunnel.artifacts import write_artifact
from windtunnel.attempt.pack import is_due, run_pack
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, write_next_attempt
from windtunnel.ledger.log import LEDGER, append_event
from windtunnel.records.trial import AttemptEnd, Verdict


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    written = write_trial(tmp_path, make_trial())
    append_event(written.path, "submitting", attempt=0, submission="x", index=0)
    return written


def test_a_trial_of_this_job_is_due_also_before_its_driver_wrote_the_jobs_id(folder: TrialFolder) -> None:
    assert is_due(folder, "7_1")
    append_event(folder.path, "submitted", attempt=0, job_id="7_1")
    assert is_due(folder, "7_1")


def test_a_trial_that_was_submitted_elsewhere_since_is_not_due(folder: TrialFolder) -> None:
    append_event(folder.path, "submitted", attempt=0, job_id="8")
    assert not is_due(folder, "7_1")
    append_event(folder.path, "submitting", attempt=0, submission="y", index=0)
    assert is_due(folder, "7_1")


def test_a_trial_that_somebody_cancelled_is_not_due_until_it_is_submitted_again(folder: TrialFolder) -> None:
    append_event(folder.path, "cancelling", attempt=0, user="rosa")
    append_event(folder.path, "submitted", attempt=0, submission="x", job_id="7_1")
    assert not is_due(folder, "7_1")
    append_event(folder.path, "submitting", attempt=0, submission="y", index=0)
    assert is_due(folder, "8_0")


def test_a_done_trial_is_not_due(folder: TrialFolder) -> None:
    write_artifact(folder.done, make_outcome(folder.path.name))
    assert not is_due(folder, "7_1")


@pytest.mark.parametrize(
    ("verdict", "job_id", "due"),
    [
        (Verdict.FAILED, "7_1", False),
        (Verdict.OOM, "7_1", False),
        (Verdict.TIMEOUT, "7_1", False),
        (Verdict.CANCELLED, "7_1", False),
        (Verdict.PREEMPTED, "7_1", True),
        (Verdict.NODE_FAIL, "7_1", True),
        (Verdict.FAILED, "5", True),
    ],
)
def test_a_job_started_again_goes_on_with_what_was_stopped_and_not_with_what_ended(
    folder: TrialFolder, verdict: Verdict, job_id: str, due: bool
) -> None:
    write_end(folder, verdict, job_id)
    assert is_due(folder, "7_1") is due


def test_an_attempt_that_did_not_tell_its_end_is_due_again(folder: TrialFolder) -> None:
    number = write_next_attempt(folder)
    folder.end(number).write_text(json.dumps({"half": "an"})[:-3])
    assert is_due(folder, "7_1")


def test_a_full_disk_costs_a_trial_its_line_in_the_ledger_and_not_the_job(tmp_path: Path) -> None:
    folders = [write_trial(tmp_path, make_trial(name)) for name in "ab"]
    (folders[0].path / LEDGER).write_text("\n" * 100_000)
    with at_most_bytes(100_000):
        assert run_pack([folder.path for folder in folders], rank_command=RANK) == 0
    assert all(folder.done.exists() for folder in folders)


def test_a_trial_that_went_elsewhere_before_its_turn_is_left_to_the_other_job(tmp_path: Path) -> None:
    first, second = (write_trial(tmp_path, make_trial(name)) for name in "ab")
    line = json.dumps(
        {"kind": "submitted", "attempt": 0, "at": 1.0, "host": "n0", "pid": 1, "details": {"job_id": "8"}}
    )
    submit = ("sh", "-c", f"echo '{line}' >> {second.path / LEDGER}", "rank")
    assert run_pack([first.path, second.path], rank_command=submit) == 1
    assert read_attempt_numbers(first) == [1]
    assert read_attempt_numbers(second) == []


def write_end(folder: TrialFolder, verdict: Verdict, job_id: str) -> None:
    number = write_next_attempt(folder)
    write_artifact(folder.end(number), AttemptEnd(number, 1, verdict, "", ("n0",), job_id, 1.0))
