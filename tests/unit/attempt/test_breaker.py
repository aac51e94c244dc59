"""Trials that do not get further."""

import pytest

from windtunnel.attempt.breaker import find_stuck, find_vanished
from windtunnel.ledger.log import Event
from windtunnel.records.trial import AttemptEnd, Verdict


def _started(attempt, step):
    return Event("started", attempt, 0.0, "n0", 1, {"checkpoint_step": step})


def _end(attempt, verdict):
    return AttemptEnd(attempt, 1, verdict, "so it was", ("n0",), "1", 1.0)


def _past(*attempts):
    """Events and ends of attempts from a step each, that ended with a verdict."""
    events = [_started(number, step) for number, (step, _) in enumerate(attempts, 1)]
    return events, {number: _end(number, verdict) for number, (_, verdict) in enumerate(attempts, 1) if verdict}


def test_the_third_restart_without_a_newer_checkpoint_is_the_last():
    events, ends = _past((None, None), (40, Verdict.LOST), (40, Verdict.LOST), (40, Verdict.NODE_FAIL))
    assert find_stuck(events, ends, step=40) == ""
    events.append(_started(5, 40))
    ends[5] = _end(5, Verdict.LOST)
    assert find_stuck(events, ends, step=40) == (
        "3 restarts from the checkpoint of step 40 got no further: attempt 3: LOST: so it was; "
        "attempt 4: NODE_FAIL: so it was; attempt 5: LOST: so it was"
    )


def test_a_newer_checkpoint_gives_three_more():
    events, ends = _past(*[(40, Verdict.LOST)] * 4)
    assert find_stuck(events, ends, step=50) == ""


def test_attempts_that_vanished_without_a_word_count():
    events, _ = _past(*[(None, None)] * 4)
    assert "from step 0, without any checkpoint got no further: attempt 2: no word" in find_stuck(
        events, {}, step=None
    )


def test_preemptions_and_cancellations_say_nothing_of_the_trial():
    events, ends = _past(*[(40, Verdict.PREEMPTED)] * 20, *[(40, Verdict.CANCELLED)] * 3, *[(40, Verdict.LOST)] * 3)
    assert find_stuck(events, ends, step=40) == ""


def test_a_withdrawal_begins_anew():
    events, ends = _past(*[(40, Verdict.LOST)] * 4)
    events.append(Event("withdrawn", 0, 0.0, "login", 1))
    assert find_stuck(events, ends, step=40) == ""


@pytest.mark.parametrize("kind", ["started", "ended", "verdict"])
def test_a_trial_whose_checkpoints_are_gone_does_not_begin_at_step_0_in_silence(kind):
    events = [
        _started(1, None),
        Event(kind, 2, 0.0, "n0", 1, {"step" if kind == "verdict" else "checkpoint_step": 40}),
    ]
    assert find_vanished(events, step=None).startswith(
        "it had a checkpoint of step 40, and its checkpoints/ has none"
    )
    assert find_vanished(events, step=40) == ""
    events.append(Event("withdrawn", 2, 0.0, "n0", 1, {}))
    assert find_vanished(events, step=None) == ""


def test_a_trial_that_never_had_a_checkpoint_begins_at_step_0():
    assert find_vanished([_started(1, None), Event("verdict", 1, 0.0, "n0", 1, {"step": 0})], step=None) == ""


@pytest.mark.parametrize(
    ("trained", "every", "vanished"),
    [
        ({"step": 21, "attempt": 1}, 10, True),
        ({"step": 20, "attempt": 1}, 10, False),  # the second save may have told that the first one failed
        ({"step": 21, "attempt": 1}, 0, False),  # nobody knows how often
        ({"step": 21, "attempt": 7}, 10, False),  # before the verdict was withdrawn
        ({"step": "21", "attempt": 1}, 10, False),
        ({}, 10, False),
    ],
)
def test_a_trial_past_its_second_save_had_a_checkpoint_though_its_supervisor_was_killed(trained, every, vanished):
    found = find_vanished([_started(1, None)], step=None, trained=trained, every=every)
    assert bool(found) is vanished
    assert not vanished or "attempt 1 trained to step 21 with a checkpoint each 10 steps" in found
    assert find_vanished([_started(1, None)], step=10, trained=trained, every=every) == ""
