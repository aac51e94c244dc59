"""Faults told apart by what comes again."""

import math

from windtunnel.training.recovery import Fault, Recovery, Remedy, find_fault

NAN = Fault(137, "the loss became nan at step 137")


def test_what_does_not_come_again_was_transient():
    recovery = Recovery(2)
    assert recovery.decide(NAN) is Remedy.REPLAY
    assert recovery.settle(130) == []  # a checkpoint before the fault proves nothing
    assert recovery.settle(150) == ["the loss became nan at step 137; transient: it did not come again"]
    assert recovery.skipped == set()
    assert recovery.decide(Fault(170, "x")) is Remedy.REPLAY  # an earlier fault's returns are forgotten


def test_what_comes_again_on_the_same_batch_is_the_batchs():
    recovery = Recovery(2)
    assert [recovery.decide(NAN), recovery.decide(NAN)] == [Remedy.REPLAY, Remedy.SKIP]
    assert recovery.skipped == {137}
    assert recovery.settle(150) == ["the loss became nan at step 137; the batch's: skipped"]
    assert recovery.notes == ["the loss became nan at step 137; the batch's: skipped"]


def test_what_comes_even_after_a_skip_is_the_runs_own():
    recovery = Recovery(2)
    remedies = [recovery.decide(NAN), recovery.decide(NAN), recovery.decide(Fault(138, "the loss became inf"))]
    assert remedies == [Remedy.REPLAY, Remedy.SKIP, Remedy.STOP]
    assert recovery.explain_stop() == (
        "the loss became inf; it persists after 2 returns to a clean checkpoint (steps 137, 137, 138)"
    )


def test_without_rollbacks_the_first_fault_ends_the_run_with_its_own_words():
    recovery = Recovery(0)
    assert recovery.decide(NAN) is Remedy.STOP
    assert recovery.explain_stop() == NAN.told


def test_a_leap_is_a_fault_only_where_asked_and_once_enough_is_known():
    usual = [1.0, 1.1, 0.9] * 7
    assert find_fault({5: 40.0}, known=usual, spike=0) is None
    assert find_fault({5: 40.0}, known=usual[:19], spike=10) is None
    assert find_fault({5: 9.0}, known=usual, spike=10) is None
    assert find_fault({4: 1.0, 5: 40.0, 6: math.nan}, known=usual, spike=10) == Fault(
        5, "the loss leapt to 40 at step 5, 40 times its median"
    )
