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
    count_attempts,
    count_node_seconds,
    find_job_id,
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


def test_attempts_that_someone_stopped_do_not_count_against_the_limit() -> None:
    ends = {1: end(Verdict.CANCELLED, 1), 2: end(Verdict.LOST, 2)}
    told = event("verdict", 3, verdict="CANCELLED")
    assert count_attempts(replace(NONE, attempts=(1, 2, 3, 4), ends=ends, events=(told,))) == 2


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
