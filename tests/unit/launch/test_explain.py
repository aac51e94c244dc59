import time
from dataclasses import replace

import pytest

from fake_trials import make_trial
from watched_study import end, row_of, start
from windtunnel.launch.explain import Case, explain_pruned, explain_trial
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.lease import Holder, take_lease
from windtunnel.ledger.log import append_event
from windtunnel.ledger.nodes import Exclusion
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase, reconcile
from windtunnel.records.goodput import Bucket, Goodput
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import RetrySettings

DRIVER = Holder("login1", 7, "", 0.0)
TRIAL = make_trial("a")


def explain(root, *, sight=UNSEEN, driver=None, **changes):
    facts = read_facts(trial_folder(root, TRIAL.id), steps=TRIAL.steps)
    standing = reconcile(facts, sight, now=time.time(), lost_after_s=1000)
    case = Case(row_of(TRIAL), facts, standing, sight, RetrySettings(), False, driver, "again", Exclusion())
    return explain_trial(replace(case, **changes))


def test_a_completed_trials_history_is_told_in_order(tmp_path):
    end(tmp_path, TRIAL, Verdict.COMPLETED, "all well")
    first, submitted, started, ended, used, last = explain(tmp_path)
    assert first == f"trial {TRIAL.id}: a: 1 node, 3 steps, at most 5 min 00 s an attempt"
    assert "Submitted as job" in submitted
    assert started.endswith("Attempt 1 started on n[0-1].")
    assert ended.endswith("Attempt 1 ended after 1 s: COMPLETED: all well.")
    assert used == "It used 0.000556 node-hours in 1 attempt."
    assert last == "It is COMPLETED: DONE.json of attempt 1: 3 steps. That is final."


def test_a_failed_trial_says_how_it_may_run_again(tmp_path):
    end(tmp_path, TRIAL, Verdict.FAILED, "rank 0: no such loss")
    assert explain(tmp_path)[-1].startswith("It is FAILED: rank 0: no such loss. That is final. `windtunnel retry`")


def test_where_its_time_went_is_told_the_largest_part_first(tmp_path):
    end(tmp_path, TRIAL, Verdict.COMPLETED, "all well")
    seconds = dict.fromkeys(Bucket, 0.0) | {Bucket.START_UP: 10.0, Bucket.PRODUCTIVE: 30.0}
    told = explain(tmp_path, goodput=Goodput(40.0, seconds, 60, ()))[-2]
    assert told == "Its 40 s were: 75.0% productive, 25.0% start-up; 60 new steps at 2 a second."


@pytest.mark.parametrize(
    ("driver", "words"), [(DRIVER, "Its driver tries it again (trying"), (None, "not final: `again` tries it again")]
)
def test_a_preempted_trial_is_tried_again_within_its_budget(tmp_path, driver, words):
    end(tmp_path, TRIAL, Verdict.PREEMPTED, "told to stop")
    assert words in explain(tmp_path, driver=driver)[-1]


def test_a_waiting_trial_tells_slurms_reason_and_that_nobody_watches(tmp_path):
    (tmp_path / "trials" / TRIAL.id).mkdir(parents=True)
    append_event(tmp_path / "trials" / TRIAL.id, "submitted", attempt=0, job_id="12_3")
    last = explain(tmp_path, sight=JobSight(Phase.QUEUED, evidence="Priority"))[-1]
    assert last == "It waits: Slurm has job 12_3 queued (Priority). Nobody drives its study: `again` watches it."


def test_a_running_trial_names_its_supervisor(tmp_path):
    lease = take_lease(start(tmp_path, TRIAL).lease, "trial")
    assert "It runs under pid" in explain(tmp_path, driver=DRIVER)[-1]
    lease.release()


def test_a_trial_that_was_never_begun_says_what_submits_it(tmp_path):
    assert explain(tmp_path)[-1] == ("It has not been submitted, and nobody drives its study: `again` submits it.")
    assert "the driver (pid 7 on host login1) submits it" in explain(tmp_path, driver=DRIVER)[-1]


def test_who_cancelled_and_who_withdrew_is_told(tmp_path):
    folder = end(tmp_path, TRIAL, Verdict.CANCELLED, "told to stop")
    append_event(folder.path, "cancelling", attempt=1, study="s", user="ada")
    assert "cancelled by ada" in explain(tmp_path)[-1]
    append_event(folder.path, "withdrawn", attempt=1, reason="retry by ada")
    lines = explain(tmp_path)
    assert any("budgets count anew: retry by ada." in line for line in lines)
    assert lines[-1].startswith("It was withdrawn, and has not been submitted")


def test_a_job_that_waits_behind_the_present_one_and_what_it_made_of_that_ones_end_are_told(tmp_path):
    folder = start(tmp_path, TRIAL)
    append_event(folder.path, "queued", attempt=0, job_id="13", behind="12")
    append_event(folder.path, "verdict", attempt=1, verdict="LOST", evidence="its job is gone", by="successor")
    lines = "\n".join(explain(tmp_path))
    assert "Job 13 was queued behind job 12, to go on with it." in lines
    assert "The job behind it judged it LOST: its job is gone." in lines


def test_nodes_that_are_left_out_are_named(tmp_path):
    assert "Left out of submissions after failures: n[3-4]." in explain(tmp_path, exclusion=Exclusion(("n3", "n4")))


def test_a_pruned_combination_tells_why_it_is_no_trial():
    pruned = (("tcn ddp3", "a batch of 64 does not divide"), ("tcn ddp5", "nor over 5"))
    assert explain_pruned(pruned, "ddp3") == ["tcn ddp3 was pruned, and is no trial: a batch of 64 does not divide"]
    assert explain_pruned(pruned, "") == []
