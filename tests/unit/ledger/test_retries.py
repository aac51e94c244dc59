from typing import Any

import pytest

from windtunnel.ledger.log import Event
from windtunnel.ledger.retries import Ending, decide_retry, is_spent, read_retried
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.sweep import RetrySettings

BUDGETS = RetrySettings(node_fail=2, lost=1, preempted=3, timeout=2)


def event(kind: str, attempt: int = 0, **details: Any) -> Event:
    return Event(kind, attempt, 0.0, "login", 1, details)


def end(verdict: Verdict, attempt: int = 1) -> AttemptEnd:
    return AttemptEnd(attempt, 1, verdict, "the cause", ("n0",), "7", 10.0)


def test_each_cause_has_a_budget_of_its_own() -> None:
    earlier = [Ending(Verdict.NODE_FAIL), Ending(Verdict.LOST)]
    node = decide_retry(Ending(Verdict.NODE_FAIL), earlier, BUDGETS)
    assert (node.again, node.words) == (True, "trying again (2 of 2 after NODE_FAIL)")
    lost = decide_retry(Ending(Verdict.LOST), earlier, BUDGETS)
    assert (lost.again, lost.words) == (False, "its one retry after LOST is used up")


@pytest.mark.parametrize("verdict", [Verdict.OOM, Verdict.FAILED, Verdict.CANCELLED, Verdict.COMPLETED])
def test_a_trials_own_fault_and_a_wish_are_not_retried_unless_asked(verdict: Verdict) -> None:
    assert decide_retry(Ending(verdict), [], BUDGETS).again is False
    assert decide_retry(Ending(verdict), [], BUDGETS).words == ""


def test_errors_and_memory_are_retried_when_asked() -> None:
    asked = RetrySettings(out_of_memory=1, failed=1)
    assert decide_retry(Ending(Verdict.OOM), [], asked).again
    assert decide_retry(Ending(Verdict.FAILED), [Ending(Verdict.OOM)], asked).again
    assert not decide_retry(Ending(Verdict.FAILED), [Ending(Verdict.FAILED)], asked).again


def test_a_timeout_is_retried_only_while_it_leaves_newer_checkpoints() -> None:
    assert not decide_retry(Ending(Verdict.TIMEOUT, 0), [], BUDGETS).again
    assert decide_retry(Ending(Verdict.TIMEOUT, 40), [], BUDGETS).again
    stuck = decide_retry(Ending(Verdict.TIMEOUT, 40), [Ending(Verdict.TIMEOUT, 40)], BUDGETS)
    assert stuck.words == "not tried again: it made no checkpoint newer than that of step 40 within its time limit"
    assert decide_retry(Ending(Verdict.TIMEOUT, 80), [Ending(Verdict.TIMEOUT, 40)], BUDGETS).again


def test_only_endings_after_which_the_trial_was_started_again_count() -> None:
    events = [
        event("submitted", job_id="7"),
        event("started", 1, job_id="7"),
        event("verdict", 1, verdict="NODE_FAIL", step=30),
        event("submitting"),
        event("submitted", job_id="8"),
        event("verdict", 1, verdict="LOST"),
    ]
    assert read_retried(events, {}) == [Ending(Verdict.NODE_FAIL, 30)]


def test_slurms_own_requeue_counts_after_a_nodes_failure_and_not_after_a_preemption() -> None:
    starts = [event("started", number, job_id="7") for number in (1, 2, 3)]
    assert read_retried(starts, {1: end(Verdict.PREEMPTED, 1)}) == [Ending(Verdict.NODE_FAIL)]
    # Slurm requeues no job for its time limit: the supervisor only guessed so, near it.
    assert read_retried(starts[:2], {1: end(Verdict.TIMEOUT, 1)}) == []


def test_a_run_that_no_driver_judged_counts_by_its_own_record_or_as_lost() -> None:
    events = [event("started", 1, job_id="7"), event("submitting"), event("started", 2, job_id="8")]
    assert read_retried(events, {}) == [Ending(Verdict.LOST)]
    assert read_retried(events, {1: end(Verdict.PREEMPTED)}) == [Ending(Verdict.PREEMPTED)]


def test_a_job_that_tells_of_itself_before_its_driver_does_is_one_run() -> None:
    events = [event("submitting"), event("started", 1, job_id="7"), event("submitted", job_id="7")]
    assert read_retried(events, {}) == []


def test_a_trial_whose_turn_in_its_job_never_came_pays_nothing() -> None:
    unturned = [event("submitting"), event("waiting", job_id="7"), event("submitted", job_id="7")]
    events = [*unturned, event("verdict", verdict="PREEMPTED")] * 5
    assert read_retried([*events, event("submitting")], {}) == []
    free = decide_retry(Ending(Verdict.PREEMPTED, begun=False), [Ending(Verdict.PREEMPTED)] * 9, BUDGETS)
    assert (free.again, free.words) == (True, "submitting it again, at no cost: it had not begun")


def test_a_trial_that_was_stopped_in_its_turn_pays_for_it() -> None:
    events = [event("submitting"), event("waiting", job_id="7"), event("started", 1, job_id="7")]
    stopped = [*events, event("ended", 1), event("verdict", 1, verdict="PREEMPTED"), event("submitting")]
    assert read_retried(stopped, {}) == [Ending(Verdict.PREEMPTED)]
    first = [event("submitting"), event("submitted", job_id="7"), event("verdict", verdict="PREEMPTED")]
    assert read_retried([*first, event("submitting")], {}) == [Ending(Verdict.PREEMPTED)]


def test_withdrawing_gives_the_budgets_back() -> None:
    events = [
        event("verdict", 1, verdict="LOST"),
        event("submitted", job_id="8"),
        event("verdict", 2, verdict="LOST"),
        event("withdrawn", 2),
        event("submitted", job_id="9"),
    ]
    assert read_retried(events, {}) == []


def test_a_trial_that_its_nodes_keep_failing_of_is_spent() -> None:
    assert not is_spent(Verdict.NODE_FAIL, [Ending(Verdict.NODE_FAIL)] * 2, BUDGETS)
    assert is_spent(Verdict.NODE_FAIL, [Ending(Verdict.NODE_FAIL)] * 3, BUDGETS)
