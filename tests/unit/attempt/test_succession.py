import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fake_backend import end_attempt, start_attempt
from fake_trials import make_trial, write_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt.grant import Grant
from windtunnel.attempt.succession import free_dead_holder, take_turn
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import read_live_holder, take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.retries import Ending, read_retried
from windtunnel.records.trial import AttemptEnd, NodeFault, TrialConfig, Verdict
from windtunnel.slurm.queue import QueuedJob

GRANT = Grant(("n5",), "101", slurm=True)
BUDGETS = {"node_fail": 1, "lost": 1, "preempted": 1, "timeout": 1}


def slurm_says(state: str) -> "Mapping[str, QueuedJob]":
    # Slurm 22.05 gives this reason for a job whose script was killed.
    return {"1": QueuedJob("1", state, "n3", "JobLaunchFailure" if state == "FAILED" else "None", "x")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialFolder:
    """A trial whose first attempt began in job 1, behind which job 101, this one, waited."""
    monkeypatch.setenv("SLURM_JOB_NAME", "x")
    folder = write_trial(tmp_path, make_trial("a"))
    append_event(folder.path, "submitting", attempt=0, submission="x", index=0, alone=True)
    append_event(folder.path, "submitted", attempt=0, job_id="1", submission="x")
    append_event(folder.path, "queueing", attempt=0, submission="x", retries=BUDGETS)
    append_event(folder.path, "queued", attempt=0, job_id="101", behind="1")
    start_attempt(folder, "1")
    return folder


def take(folder: TrialFolder, state: str = "", *, grant: Grant = GRANT) -> AttemptEnd | None:
    """What the successor does, where Slurm says that of the job before it."""

    def read(job_ids: Collection[str]) -> Mapping[str, QueuedJob]:
        assert state, f"Slurm was asked of {job_ids}, though the records tell"
        return slurm_says(state)

    config = read_artifact(folder.config, TrialConfig)
    return take_turn(folder, config, grant, life_at=time.time(), read_jobs=read)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [("FAILED", Verdict.LOST), ("NODE_FAIL", Verdict.NODE_FAIL), ("PREEMPTED", Verdict.PREEMPTED)],
)
def test_a_successor_goes_on_after_a_job_that_left_no_word_and_writes_down_how_slurm_says_it_ended(
    folder: TrialFolder, state: str, verdict: Verdict
) -> None:
    assert take(folder, state) is None
    told = read_events(folder.path)[-1]
    assert (told.kind, told.details["verdict"], told.details["job_id"]) == ("verdict", verdict, "1")
    start_attempt(folder, "101")
    assert read_retried(read_events(folder.path), {}) == [Ending(verdict)]


def test_a_successor_does_not_go_on_after_scancel_though_the_supervisor_left_no_word(folder: TrialFolder) -> None:
    left = take(folder, "CANCELLED")
    assert left is not None
    assert left.verdict == Verdict.CANCELLED
    assert "nothing was run" in left.evidence
    assert read_events(folder.path)[-1].kind == "started"


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.OOM, Verdict.CANCELLED])
def test_a_successor_runs_nothing_after_an_end_that_is_not_tried_again(folder: TrialFolder, verdict: Verdict) -> None:
    end_attempt(folder, 1, verdict, job_id="1")
    left = take(folder)
    assert left is not None
    assert left.verdict == verdict


def test_a_successor_goes_on_after_a_time_limit_within_which_there_was_a_checkpoint(folder: TrialFolder) -> None:
    end_attempt(folder, 1, Verdict.TIMEOUT, job_id="1")
    left = take(folder)
    assert left is not None
    assert "no checkpoint at all" in left.evidence
    (folder.path / "checkpoints" / "step-00000007").mkdir(parents=True)
    assert take(folder) is None
    assert read_events(folder.path)[-1].details["step"] == 7


def test_a_successor_keeps_to_the_budgets_that_it_was_queued_with(folder: TrialFolder) -> None:
    append_event(folder.path, "verdict", attempt=1, verdict="LOST", evidence="gone", job_id="1", step=0)
    start_attempt(folder, "1")
    left = take(folder, "FAILED")
    assert left is not None
    assert "its one retry after LOST is used up" in left.evidence


def test_a_successor_heeds_a_wish_a_drivers_word_and_a_later_submission(folder: TrialFolder) -> None:
    for kind, details, why in (
        ("verdict", {"verdict": "NODE_FAIL", "evidence": "down", "again": False}, "does not try it again"),
        ("cancelling", {"user": "rosa"}, "somebody cancelled"),
        ("submitting", {"submission": "y", "index": 0}, "submitted anew since, as y"),
    ):
        append_event(folder.path, kind, attempt=1, **details)
        left = take(folder, "NODE_FAIL")
        assert left is not None
        assert why in left.evidence


def test_a_successor_that_a_driver_made_the_present_job_runs_whatever_was_before(folder: TrialFolder) -> None:
    end_attempt(folder, 1, Verdict.FAILED, job_id="1")
    append_event(folder.path, "submitted", attempt=0, job_id="101", submission="x")
    assert take(folder) is None
    assert read_events(folder.path)[-1].kind == "submitted"


def test_a_successor_leaves_a_node_that_was_just_found_unfit_to_a_driver(folder: TrialFolder) -> None:
    end_attempt(folder, 1, Verdict.NODE_FAIL, job_id="1")
    assert take(folder) is None
    end = read_artifact(folder.end(1), AttemptEnd)
    write_artifact(folder.end(1), replace(end, node_faults=(NodeFault("n5", "its disk is full", hard=True),)))
    left = take(folder)
    assert left is not None
    assert "node n5 was found unfit" in left.evidence


def test_a_withdrawn_verdict_leaves_the_trial_to_the_driver_of_the_next_sweep(folder: TrialFolder) -> None:
    append_event(folder.path, "withdrawn", attempt=1, reason="try again")
    assert take(folder) is not None


@pytest.mark.parametrize(("state", "freed"), [("FAILED", True), ("COMPLETING", False), ("NODE_FAIL", False)])
def test_the_lease_of_a_supervisor_whose_job_has_ended_is_freed_before_its_heartbeat_is_stale(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch, state: str, freed: bool
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "n3")
    take_lease(folder.lease, "it", job_id="1")
    monkeypatch.setattr("socket.gethostname", lambda: "n5")
    assert free_dead_holder(folder, GRANT, read_jobs=lambda _: slurm_says(state)) is freed
    assert (read_live_holder(folder.lease) is None) is freed
    assert not free_dead_holder(folder, replace(GRANT, job_id="1"), read_jobs=lambda _: slurm_says(state))
