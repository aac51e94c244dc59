"""What an attempt asks about a signal, and when."""

import time
from queue import Queue

import pytest

from windtunnel.attempt.plan import LaunchPlan
from windtunnel.attempt.ranks import StopRequest
from windtunnel.attempt.signalled import SignalWatch, ask_slurm
from windtunnel.slurm.cause import Cause

NOW = time.time()
PLAN = LaunchPlan((), ("n0",), None, None)


@pytest.fixture(autouse=True)
def job(monkeypatch):
    """A job whose time is up in 100 s, on a place where nobody answers."""
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(NOW) + 100))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def test_slurm_is_asked_once_and_only_after_a_signal():
    asked, stop = [], StopRequest()
    watch = SignalWatch(stop, lambda at: asked.append(at) or Cause.CANCEL)
    watch.look()
    assert asked == []
    stop.receive(15, None)
    for _ in range(3):
        watch.look()
    assert watch.read(told=False) is Cause.CANCEL
    assert asked == [stop.at]


def test_the_cause_is_kept_as_soon_as_it_is_known_and_not_only_at_the_end():
    kept, stop = Queue(), StopRequest()
    watch = SignalWatch(stop, lambda _: Cause.TIME_LIMIT, kept.put)
    stop.receive(15, None)
    watch.look()
    assert kept.get(timeout=10) is Cause.TIME_LIMIT


def test_a_rank_that_was_signalled_alone_is_a_reason_to_ask_too():
    watch = SignalWatch(StopRequest(), lambda _: Cause.PREEMPTION)
    assert watch.read(told=False) is Cause.UNKNOWN
    assert watch.read(told=True) is Cause.PREEMPTION


def test_without_slurm_nobody_is_asked():
    stop = StopRequest()
    stop.receive(15, None)
    watch = SignalWatch(stop, None)
    watch.look()
    assert watch.read(told=True) is Cause.UNKNOWN


def test_a_signal_is_judged_by_the_jobs_clock_however_late_the_attempt_began():
    ask = ask_slurm(PLAN, time_min=10, started_at=NOW - 5)
    assert ask(NOW) is Cause.TIME_LIMIT
    assert ask(NOW - 100) is Cause.UNKNOWN


def test_a_job_that_is_not_told_its_end_is_as_old_as_its_process(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME")
    monkeypatch.delenv("SLURM_JOB_START_TIME", raising=False)
    assert ask_slurm(PLAN, time_min=10, started_at=NOW)(NOW + 5) is Cause.UNKNOWN
    assert ask_slurm(PLAN, time_min=10, started_at=NOW + 300)(NOW + 600 - 120) is Cause.TIME_LIMIT


def test_a_trial_of_a_pack_is_judged_by_its_own_time_and_not_by_the_jobs():
    packed = LaunchPlan((), ("n0",), None, 600.0)
    assert ask_slurm(packed, time_min=10, started_at=NOW - 5)(NOW) is Cause.UNKNOWN
    assert ask_slurm(packed, time_min=10, started_at=NOW - 550)(NOW) is Cause.TIME_LIMIT
