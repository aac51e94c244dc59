from dataclasses import replace
from typing import Any

import pytest

from fake_trials import make_outcome
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.lease import Holder
from windtunnel.ledger.log import Event
from windtunnel.ledger.reconcile import (
    UNSEEN,
    JobSight,
    Phase,
    Standing,
    count_node_seconds,
    find_job_id,
    is_outlived,
    reconcile,
)
from windtunnel.records.trial import AttemptEnd, Verdict

NONE = TrialFacts((), (), {}, None, "", None, 0.0)
HOLDER = Holder("n0", 7, "boot:1", 0.0)
GONE = JobSight(Phase.ENDED, None, "Slurm says COMPLETED of job 7")


def event(kind: str, attempt: int = 0, at: float = 0.0, **details: Any) -> Event:
    return Event(kind, attempt, at, "login", 1, details)


def end(verdict: Verdict, attempt: int = 1) -> AttemptEnd:
    return AttemptEnd(attempt, 1, verdict, "the cause", ("n0", "n1"), "7", 10.0)


SUBMITTED = replace(NONE, events=(event("submitted", job_id="7"),), life_at=100.0)
STARTED = replace(
    SUBMITTED, events=(*SUBMITTED.events, event("started", 1, 100.0, job_id="7", hosts=["n0"])), attempts=(1,)
)
ENDED = replace(STARTED, events=(*STARTED.events, event("ended", 1, 110.0)))


def stand(facts: TrialFacts, job: JobSight = UNSEEN, now: float = 101.0) -> Standing:
    return reconcile(facts, job, now=now, lost_after_s=60.0)


def test_a_trial_without_records_is_new() -> None:
    assert stand(NONE).phase == Phase.NEW


def test_only_a_valid_done_is_completed() -> None:
    done = replace(ENDED, outcome=make_outcome("abc"))
    assert stand(done).verdict == Verdict.COMPLETED


def test_a_job_that_slurm_calls_completed_without_done_is_lost() -> None:
    standing = stand(STARTED, GONE)
    assert standing.verdict == Verdict.LOST
    assert standing.evidence == "Slurm says COMPLETED of job 7; it left neither DONE.json nor END.json"


def test_an_end_that_says_completed_without_a_valid_done_is_lost() -> None:
    facts = replace(ENDED, ends={1: end(Verdict.COMPLETED)}, done_problem="DONE.json is damaged")
    assert stand(facts, GONE).verdict == Verdict.LOST
    assert "DONE.json is damaged" in stand(facts, GONE).evidence


def test_a_done_trial_whose_supervisor_still_ends_its_ranks_is_running() -> None:
    assert stand(replace(STARTED, outcome=make_outcome("abc"), holder=HOLDER)).phase == Phase.RUNNING


def test_a_live_supervisor_is_running_whatever_slurm_says() -> None:
    assert stand(replace(STARTED, holder=HOLDER), GONE).phase == Phase.RUNNING


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.OOM])
def test_a_trials_own_fault_is_known_before_its_job_leaves_the_queue(verdict: Verdict) -> None:
    assert stand(replace(ENDED, ends={1: end(verdict)}), JobSight(Phase.RUNNING)).verdict == verdict


def test_a_requeued_job_waits_after_its_attempt_was_stopped() -> None:
    facts = replace(ENDED, ends={1: end(Verdict.PREEMPTED)})
    assert stand(facts, JobSight(Phase.QUEUED)).phase == Phase.QUEUED


def test_slurm_says_by_whom_an_attempt_was_stopped() -> None:
    facts = replace(ENDED, ends={1: end(Verdict.PREEMPTED)})
    job = JobSight(Phase.ENDED, Verdict.CANCELLED, "Slurm says CANCELLED")
    assert stand(facts, job) == Standing(Phase.ENDED, Verdict.CANCELLED, "the cause; Slurm says CANCELLED")


def test_slurm_does_not_excuse_a_trials_own_fault() -> None:
    job = JobSight(Phase.ENDED, Verdict.CANCELLED, "Slurm says CANCELLED")
    assert stand(replace(ENDED, ends={1: end(Verdict.FAILED)}), job).verdict == Verdict.FAILED


@pytest.mark.parametrize("verdict", [Verdict.NODE_FAIL, Verdict.TIMEOUT, Verdict.OOM, Verdict.PREEMPTED])
def test_slurm_explains_an_attempt_that_left_nothing(verdict: Verdict) -> None:
    assert stand(STARTED, JobSight(Phase.ENDED, verdict, "told")).verdict == verdict


def test_a_trial_that_nobody_knows_is_waited_for_and_then_lost() -> None:
    assert stand(STARTED, now=159.0).phase == Phase.UNSURE
    assert stand(STARTED, now=161.0).verdict == Verdict.LOST


def test_the_end_of_an_attempt_does_not_count_once_it_was_submitted_again() -> None:
    facts = replace(ENDED, ends={1: end(Verdict.FAILED)}, events=(*ENDED.events, event("submitted", job_id="8")))
    assert stand(facts, JobSight(Phase.QUEUED)).phase == Phase.QUEUED
    assert find_job_id(facts) == "8"


def test_a_drivers_verdict_stands_for_the_next_driver() -> None:
    told = event("verdict", 1, verdict="NODE_FAIL", evidence="n0 went down")
    facts = replace(STARTED, events=(*STARTED.events, told))
    assert stand(facts) == Standing(Phase.ENDED, Verdict.NODE_FAIL, "n0 went down")


def test_a_job_that_ended_is_given_time_for_records_that_a_slow_file_system_still_hides() -> None:
    job = replace(GONE, ended_at=100.0)
    late = replace(STARTED, outcome=make_outcome("abc"))
    assert reconcile(STARTED, job, now=130.0, lost_after_s=60, settle_s=60).phase == Phase.RUNNING
    assert reconcile(late, job, now=130.0, lost_after_s=60, settle_s=60).verdict == Verdict.COMPLETED
    assert reconcile(STARTED, job, now=161.0, lost_after_s=60, settle_s=60).verdict == Verdict.LOST


def test_a_supervisor_that_outlives_its_job_and_every_limit_is_waited_for_no_more() -> None:
    held = replace(STARTED, holder=HOLDER)
    assert reconcile(held, GONE, now=199.0, lost_after_s=60, limit_s=100).phase == Phase.RUNNING
    standing = reconcile(held, GONE, now=201.0, lost_after_s=60, limit_s=100)
    assert standing.verdict == Verdict.LOST
    assert "pid 7 on host n0" in standing.evidence
    assert reconcile(held, JobSight(Phase.RUNNING), now=1e9, lost_after_s=60, limit_s=100).phase == Phase.RUNNING


@pytest.mark.parametrize(
    ("verdict", "outlived"), [(None, True), (Verdict.PREEMPTED, True), (Verdict.NODE_FAIL, False)]
)
def test_slurms_word_on_a_holders_own_job_outdoes_its_heartbeat_unless_it_lost_sight_of_the_node(
    verdict: Verdict | None, outlived: bool
) -> None:
    facts = replace(STARTED, holder=replace(HOLDER, job_id="7"))
    job = JobSight(Phase.ENDED, verdict)
    assert is_outlived(facts, job, "7", here="login") == outlived
    assert not is_outlived(facts, job, "7", here="n0")
    assert not is_outlived(facts, job, "8", here="login")
    assert not is_outlived(facts, JobSight(Phase.QUEUED), "7", here="login")


@pytest.mark.parametrize("verdict", [Verdict.PREEMPTED, Verdict.TIMEOUT, Verdict.LOST])
def test_a_wish_to_cancel_explains_a_stop_and_nothing_else(verdict: Verdict) -> None:
    wished = replace(ENDED, events=(*ENDED.events, event("cancelling", 1, 105.0, user="rosa")))
    standing = stand(replace(wished, ends={1: end(verdict)}), GONE)
    assert (standing.verdict, standing.evidence.split(" at ")[0]) == (
        Verdict.CANCELLED,
        "cancelled by rosa on host login",
    )
    written = event("verdict", 1, 106.0, verdict="CANCELLED", evidence=standing.evidence)
    assert stand(replace(wished, events=(*wished.events, written)), GONE).evidence == standing.evidence
    assert stand(replace(wished, ends={1: end(Verdict.FAILED)})).verdict == Verdict.FAILED
    assert stand(replace(wished, outcome=make_outcome("abc"))).verdict == Verdict.COMPLETED


def test_a_wish_to_cancel_holds_for_a_trial_that_is_not_submitted_and_ends_with_the_next_submission() -> None:
    wished = replace(NONE, events=(event("cancelling", user="rosa"),))
    assert stand(wished).verdict == Verdict.CANCELLED
    again = replace(wished, events=(*wished.events, event("submitted", job_id="8")))
    assert stand(again, JobSight(Phase.QUEUED)).phase == Phase.QUEUED


def test_a_wish_holds_though_the_jobs_id_is_written_down_after_it() -> None:
    events = (
        event("submitting", submission="x", index=0),
        event("cancelling", user="rosa"),
        event("submitted", job_id="8", submission="x"),
    )
    ended = JobSight(Phase.ENDED, Verdict.PREEMPTED)
    assert stand(replace(NONE, events=events), ended).verdict == Verdict.CANCELLED


def test_a_wish_leaves_a_job_alone_that_is_still_there() -> None:
    wished = replace(STARTED, events=(*STARTED.events, event("cancelling", 1)))
    assert stand(wished, JobSight(Phase.RUNNING)).phase == Phase.RUNNING
    assert find_job_id(wished) == "7"


@pytest.mark.parametrize("kind", ["withdrawn", "postponed"])
def test_a_trial_whose_verdict_or_submission_came_to_nothing_is_new(kind: str) -> None:
    facts = replace(ENDED, ends={1: end(Verdict.FAILED)}, events=(*ENDED.events, event(kind)))
    assert stand(facts).phase == Phase.NEW
    assert find_job_id(facts) == ""


def test_a_trial_that_waits_for_its_turn_in_a_job_is_no_victim_of_the_jobs_end() -> None:
    facts = replace(SUBMITTED, events=(*SUBMITTED.events, event("waiting", job_id="7")))
    ended = stand(facts, JobSight(Phase.ENDED, Verdict.TIMEOUT, "Slurm says TIMEOUT of job 7"))
    assert (ended.verdict, ended.evidence) == (
        Verdict.PREEMPTED,
        "Slurm says TIMEOUT of job 7, before the trial's turn came",
    )
    assert stand(facts, JobSight(Phase.ENDED, Verdict.CANCELLED)).verdict == Verdict.CANCELLED


def test_a_job_that_waits_tells_why() -> None:
    assert stand(SUBMITTED, JobSight(Phase.QUEUED, evidence="Resources")).evidence == "Resources"


def test_node_seconds_add_up_over_attempts_with_and_without_an_end() -> None:
    facts = replace(
        NONE,
        attempts=(1, 2, 3),
        ends={1: end(Verdict.LOST)},
        events=(
            event("started", 2, 200.0, hosts=["n0", "n1", "n1"]),
            event("verdict", 2, 900.0, verdict="LOST", life_at=230.0),
            event("started", 3, 1000.0, hosts=["n0"]),
        ),
        life_at=1005.0,
    )
    assert count_node_seconds(facts) == 2 * 10 + 2 * 30 + 5


def test_a_trial_that_comes_later_in_a_running_job_is_queued() -> None:
    facts = replace(SUBMITTED, events=(*SUBMITTED.events, event("waiting", job_id="7")))
    assert stand(facts, JobSight(Phase.RUNNING)).phase == Phase.QUEUED


def test_a_job_that_ended_before_its_driver_wrote_its_id_down_told_its_own_end() -> None:
    told = (event("submitting"), event("started", 1, job_id="7"), event("ended", 1, job_id="7"))
    events = (*told, event("submitted", job_id="7"))
    facts = replace(NONE, events=events, attempts=(1,), ends={1: end(Verdict.FAILED)})
    assert stand(facts, JobSight(Phase.ENDED)).verdict == Verdict.FAILED
    again = replace(facts, events=(*told, event("submitted", job_id="8")))
    assert stand(again, JobSight(Phase.QUEUED)).phase == Phase.QUEUED


def test_a_job_is_known_from_the_trial_that_waits_in_it_before_its_driver_wrote_the_id_down() -> None:
    assert find_job_id(replace(NONE, events=(event("submitting"), event("waiting", job_id="7")))) == "7"


def test_the_late_end_of_an_earlier_supervisor_does_not_take_a_trial_back_to_its_job() -> None:
    late = event("ended", 1, job_id="7")
    events = (*STARTED.events, event("submitted", job_id="8"), event("started", 2, job_id="8"), late)
    assert find_job_id(replace(STARTED, events=events)) == "8"


def test_a_wish_holds_though_the_submission_that_it_came_into_was_put_off_after_it() -> None:
    wished = (event("submitting", submission="x", index=0), event("cancelling", user="rosa"), event("postponed"))
    assert stand(replace(NONE, events=wished)).verdict == Verdict.CANCELLED
    newer = (event("cancelling", user="rosa"), event("submitting", submission="x", index=0), event("postponed"))
    assert stand(replace(NONE, events=newer)).phase == Phase.NEW
