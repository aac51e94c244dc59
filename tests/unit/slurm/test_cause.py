"""Why a job was signalled, on what Slurm 22.05 showed at that moment."""

import pytest

from windtunnel.slurm.accounting import parse_run_states
from windtunnel.slurm.cause import Cause, Clock, ShownJob, judge_cause, parse_job

SHOWN = {
    "time": "JobId=1 JobName=a JobState=COMPLETING Reason=TimeLimit Requeue=1 Restarts=0 PreemptTime=None",
    "early": "JobId=1 JobName=a JobState=RUNNING Reason=None Requeue=1 Restarts=0 PreemptTime=None",
    "cancel": "JobId=2 ArrayJobId=2 JobState=COMPLETING Reason=None Requeue=1 Restarts=0 PreemptTime=None",
    "requeue": "JobId=3 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 PreemptTime=None",
    "down": "JobId=4 JobState=PENDING Reason=BeginTime Requeue=1 Restarts=1 NodeList=",
    "down, not requeued": "JobId=5 JobState=NODE_FAIL Reason=NodeDown Requeue=0 Restarts=0 PreemptTime=None",
    "preempted": "JobId=7 JobState=COMPLETING Reason=None Requeue=0 Restarts=0 PreemptTime=2026-11-30T19:31:29",
    "gone": "",
}


EARLY, MAYBE, UP = Clock(False, False), Clock(True, False), Clock(True, True)


def _judge(shown, *accounted, restarts=0, clock=EARLY):
    return judge_cause(parse_job(SHOWN[shown]), accounted, restarts=restarts, clock=clock)


@pytest.mark.parametrize(
    ("shown", "accounted", "cause"),
    [
        ("time", "TIMEOUT", Cause.TIME_LIMIT),
        ("cancel", "CANCELLED by 1000", Cause.CANCEL),
        ("requeue", "REQUEUED", Cause.REQUEUE),
        ("requeue", "PREEMPTED", Cause.PREEMPTION),
        ("down", "NODE_FAIL", Cause.NODE),
        ("down, not requeued", "NODE_FAIL", Cause.NODE),
        ("preempted", "PREEMPTED", Cause.PREEMPTION),
        ("gone", "CANCELLED+", Cause.CANCEL),
    ],
)
def test_accounting_names_the_cause(shown, accounted, cause):
    assert _judge(shown, accounted) == cause


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        ("time", Cause.TIME_LIMIT),
        ("cancel", Cause.CANCEL),
        ("requeue", Cause.REQUEUE),
        ("down", Cause.NODE),
        ("down, not requeued", Cause.NODE),
        ("preempted", Cause.PREEMPTION),
        ("early", Cause.UNKNOWN),
        ("gone", Cause.UNKNOWN),
    ],
)
def test_the_controller_alone_tells_most_of_it(shown, cause):
    assert _judge(shown) == cause


def test_a_signal_while_running_is_the_time_limits_when_it_may_be():
    assert _judge("early", clock=UP) == Cause.TIME_LIMIT
    assert _judge("early", clock=MAYBE) == Cause.TIME_LIMIT
    assert _judge("early", clock=EARLY) == Cause.UNKNOWN


@pytest.mark.parametrize("shown", ["preempted", "cancel", "requeue", "down"])
def test_in_a_short_job_the_controllers_word_and_no_clock_tells_the_warning_from_the_rest(shown):
    assert _judge(shown, clock=UP) == _judge(shown, clock=EARLY) != Cause.TIME_LIMIT


def test_where_nobody_answers_there_is_only_the_clock():
    assert [_judge("gone", clock=clock) for clock in (EARLY, MAYBE, UP)] == [
        Cause.UNKNOWN,
        Cause.UNKNOWN,
        Cause.TIME_LIMIT,
    ]


def test_a_job_that_was_requeued_before_is_cancelled_when_it_shows_no_further_restart():
    shown = SHOWN["cancel"].replace("Restarts=0", "Restarts=2")
    assert judge_cause(parse_job(shown), (), restarts=2, clock=EARLY) == Cause.CANCEL
    assert judge_cause(parse_job(shown), (), restarts=1, clock=EARLY) == Cause.REQUEUE


def test_a_job_with_a_word_that_looks_like_a_field_in_its_name_is_read_right():
    text = "JobId=9 JobName=a JobState=RUNNING Reason=None Restarts=3 Comment=JobState=TIMEOUT PreemptTime=None"
    assert parse_job(text) == ShownJob("RUNNING", "None", 3, preempted=False)


def test_of_a_jobs_runs_those_that_ended_since_this_one_began_count():
    text = "7|1000|1060|REQUEUED\n7|1100|1160|PREEMPTED\n7|1200|Unknown|RUNNING\n8|1100|1170|FAILED\n"
    assert parse_run_states(text, "7", since=1100.4) == ["PREEMPTED"]
    assert parse_run_states(text, "7", since=900) == ["PREEMPTED", "REQUEUED"]
    assert parse_run_states(text, "7", since=1200) == []
