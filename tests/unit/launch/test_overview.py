import json
import os
import time
from dataclasses import replace

import pytest

from fake_trials import make_trial, write_trial
from watched_study import end, lay_out, publish, row_of, start
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.launch.detach import DriverJob, write_driver_job
from windtunnel.launch.glance import glance
from windtunnel.launch.overview import LOST_AFTER_S, POLL_S, read_study, stand_trial
from windtunnel.launch.place import SweepPlace, write_place
from windtunnel.launch.sights import Sights
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase, Standing, count_node_seconds, reconcile
from windtunnel.records.trial import Sweep, Verdict
from windtunnel.settings.sweep import SweepSettings


@pytest.mark.parametrize("verdict", [Verdict.COMPLETED, Verdict.FAILED, Verdict.OOM])
def test_a_glance_at_an_end_that_stays_tells_what_all_records_tell(tmp_path, verdict):
    trial = make_trial("a")
    end(tmp_path, trial, verdict, "rank 0: no such loss")
    seen = glance(f"{tmp_path}/trials", row_of(trial))
    facts = read_facts(trial_folder(tmp_path, trial.id), steps=trial.steps)
    standing = reconcile(facts, UNSEEN, now=time.time(), lost_after_s=1)
    assert (seen.verdict, seen.evidence, seen.attempts) == (standing.verdict, standing.evidence, 1)
    assert seen.node_seconds == pytest.approx(count_node_seconds(facts), abs=5)


def test_a_glance_leaves_to_all_records_what_may_still_change(tmp_path):
    trial = make_trial("a")
    row = row_of(trial)
    end(tmp_path, trial, Verdict.TIMEOUT)
    assert glance(f"{tmp_path}/trials", row) is None
    end(tmp_path, trial, Verdict.FAILED, attempt=2)
    assert glance(f"{tmp_path}/trials", row).verdict == Verdict.FAILED
    append_event(trial_folder(tmp_path, trial.id).path, "withdrawn", attempt=2, reason="retry")
    assert glance(f"{tmp_path}/trials", row) is None
    start(tmp_path, trial, attempt=3)
    assert glance(f"{tmp_path}/trials", row) is None
    append_event(trial_folder(tmp_path, trial.id).path, "verdict", attempt=2, verdict="FAILED", evidence="too late")
    assert glance(f"{tmp_path}/trials", row) is None


@pytest.mark.parametrize("change", [{"trial_id": "b"}, {"steps": 2}, None])
def test_a_glance_believes_no_done_of_another_trial_or_cut_short(tmp_path, change):
    trial = make_trial("a")
    folder = end(tmp_path, trial, Verdict.COMPLETED)
    document = json.loads(folder.done.read_text())
    text = json.dumps({**document, "content": {**document["content"], **(change or {})}})
    folder.done.write_text(text if change else text[:-20])
    assert glance(f"{tmp_path}/trials", row_of(trial)) is None


def test_a_glance_passes_over_a_torn_line(tmp_path):
    trial = make_trial("a")
    folder = end(tmp_path, trial, Verdict.COMPLETED)
    ledger = folder.path / "ledger.jsonl"
    ledger.write_text('{"kind":"subm\n' + ledger.read_text())
    assert glance(f"{tmp_path}/trials", row_of(trial)).verdict == Verdict.COMPLETED


def test_a_study_shows_each_trials_state_and_what_it_cost(tmp_path):
    trials = [make_trial(name) for name in ("a", "b", "c")]
    study = lay_out(tmp_path, trials)
    end(tmp_path, trials[0], Verdict.COMPLETED)
    end(tmp_path, trials[1], Verdict.FAILED, "rank 0: no such loss")
    view = read_study(study)
    assert [(trial.state, trial.final) for trial in view.trials] == [
        ("COMPLETED", True),
        ("FAILED", True),
        ("NEW", False),
    ]
    assert (view.trials[0].validation_loss, view.trials[0].hosts, view.trials[0].nodes) == (0.69, "n[0-1]", 2)
    assert view.trials[1].reason == "rank 0: no such loss"
    assert (view.open, view.published, view.driver) == (1, False, None)
    assert view.cost.node_hours == pytest.approx(sum(trial.node_seconds for trial in view.trials) / 3600)


def test_a_running_trial_shows_its_step_speed_and_the_time_left(tmp_path):
    trial = make_trial("a", steps=100)
    study = lay_out(tmp_path, [trial])
    folder = start(tmp_path, trial)
    lease = take_lease(folder.lease, "trial a")
    folder.metrics.write_text('{"step": 40, "loss": 0.5, "samples_per_s": 900.0, "step_s": 2.0}\n')
    (view,) = read_study(study).trials
    assert (view.state, view.step, view.steps, view.loss) == ("RUNNING", 40, 100, 0.5)
    assert (view.samples_per_s, view.eta_s) == (900.0, 120.0)
    lease.release()


def test_a_withdrawn_trial_is_new_again_and_keeps_its_attempts(tmp_path):
    trial = make_trial("a")
    study = lay_out(tmp_path, [trial])
    folder = end(tmp_path, trial, Verdict.FAILED)
    append_event(folder.path, "withdrawn", attempt=1, reason="retry")
    (view,) = read_study(study).trials
    assert (view.state, view.final, view.attempts) == ("NEW", False, 1)


def test_strict_keeps_a_failed_trial_open(tmp_path):
    trial = make_trial("a")
    study = lay_out(tmp_path, [trial])
    end(tmp_path, trial, Verdict.FAILED)
    settings = {"sweep": {"strict": True}, "cluster": {"cost_per_node_hour": 3600.0, "currency": "CHF"}}
    write_place(study, SweepPlace("study", str(tmp_path), "", "make it so", settings))
    view = read_study(study)
    assert (view.open, view.command) == (1, "make it so")
    assert str(view.cost).endswith("CHF)")


def test_a_published_sweep_is_read_alone_unless_the_plan_is_newer(tmp_path):
    trials = [make_trial("a")]
    study = lay_out(tmp_path, trials)
    publish(study, trials)
    view = read_study(study)
    assert (view.published, view.trials[0].state, view.trials[0].node_seconds) == (True, "COMPLETED", 36.0)
    publish(study, trials, age_s=60)
    assert read_study(study).trials[0].state == "NEW"


def test_the_store_of_a_place_is_where_trials_are_looked_for(tmp_path):
    trial = make_trial("a")
    study = lay_out(tmp_path / "results", [trial])
    end(tmp_path / "store", trial, Verdict.COMPLETED)
    write_place(study, SweepPlace("study", str(tmp_path / "store"), "", "again"))
    assert read_study(study).trials[0].state == "COMPLETED"


def test_whoever_drives_a_study_is_named(tmp_path):
    study = lay_out(tmp_path, [make_trial("a")])
    lease = take_lease(study / ".driver", "study")
    assert read_study(study).driver.pid == os.getpid()
    lease.release()
    assert read_study(study).driver is None


def test_a_known_end_is_not_read_again(tmp_path):
    trial = make_trial("a")
    study = lay_out(tmp_path, [trial])
    folder = end(tmp_path, trial, Verdict.COMPLETED)
    known = {view.trial_id: view for view in read_study(study).trials}
    (folder.path / "ledger.jsonl").unlink()
    assert read_study(study, known=known).trials[0].state == "COMPLETED"


def test_a_folder_without_a_plan_is_refused(tmp_path):
    write_trial(tmp_path, make_trial("a"))
    with pytest.raises(InputFileError, match="plan the study first"):
        read_study(tmp_path)


def test_a_study_that_was_not_swept_yet_is_judged_by_the_settings_defaults():
    defaults = SweepSettings()
    assert (defaults.lost_after_s, defaults.poll_s) == (LOST_AFTER_S, POLL_S)


def stand_long_silent(root, sights, job_id="7"):
    trial = make_trial("a")
    folder = trial_folder(root, trial.id)
    folder.path.mkdir(parents=True)
    append_event(folder.path, "submitted", attempt=0, job_id=job_id)
    place = SweepPlace("study", str(root), "", "again", {"sweep": {"lost_after_s": -1.0}})
    return stand_trial(read_facts(folder, steps=trial.steps), sights, place)


def stand_submitting(root, sights, *, age_s):
    trial = make_trial("a")
    folder = trial_folder(root, trial.id)
    folder.path.mkdir(parents=True, exist_ok=True)
    append_event(folder.path, "submitted", attempt=0, job_id="7")
    append_event(folder.path, "submitting", attempt=0, submission="x", index=1)
    facts = read_facts(folder, steps=trial.steps)
    old = replace(facts.events[-1], at=time.time() - age_s)
    place = SweepPlace("study", str(root), "", "again", {"sweep": {"lost_after_s": -1.0}})
    return stand_trial(replace(facts, events=(*facts.events[:-1], old)), sights, place)


def test_a_trial_whose_submission_may_be_on_its_way_is_being_submitted_and_not_lost(tmp_path):
    lost = Sights({"7": JobSight(Phase.ENDED, Verdict.NODE_FAIL)})
    assert stand_submitting(tmp_path, lost, age_s=5) == Standing(Phase.UNSURE, evidence="being submitted")
    append_event(trial_folder(tmp_path, make_trial("a").id).path, "cancelling", attempt=0)
    assert stand_submitting(tmp_path, lost, age_s=5).evidence == "being submitted"


def test_a_trial_whose_job_is_known_by_its_submissions_name_alone_stands_as_its_job(tmp_path):
    found = Sights({"9_1": JobSight(Phase.QUEUED, evidence="Priority")}, names={"x": ("9_0", "9_1")})
    for age_s in (5, 5000):
        assert stand_submitting(tmp_path, found, age_s=age_s) == Standing(Phase.QUEUED, evidence="Priority")


def test_a_submission_that_slurm_does_not_know_came_to_nothing_and_is_no_loss(tmp_path):
    assert stand_submitting(tmp_path, Sights(names={"x": ()}), age_s=5000).phase == Phase.NEW
    silent = Sights(problem="Slurm does not answer")
    assert stand_submitting(tmp_path, silent, age_s=5000) == Standing(Phase.UNSURE, evidence=silent.problem)


def test_status_asks_for_all_open_submissions_with_one_command(tmp_path, monkeypatch):
    trials = [make_trial(name) for name in ("a", "b")]
    study = lay_out(tmp_path / "results", trials)
    for index, trial in enumerate(trials):
        path = trial_folder(tmp_path / "results", trial.id).path
        append_event(path, "submitting", attempt=0, submission=f"x{index}", index=0)
    squeue = tmp_path / "squeue"
    squeue.write_text(
        f"#!/bin/sh\necho x >>{tmp_path}/asked\nprintf '5|RUNNING|n0|None|x0\\n6|PENDING||Priority|x1\\n'"
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert [(trial.state, trial.job_id) for trial in read_study(study).trials] == [("RUNNING", "5"), ("QUEUED", "6")]
    assert (tmp_path / "asked").read_text() == "x\n"


def test_while_slurm_is_silent_no_queued_job_is_lost(tmp_path):
    silent = "Slurm does not answer: timed out"
    assert stand_long_silent(tmp_path, Sights(problem=silent)) == Standing(Phase.UNSURE, evidence=silent)


def test_while_slurm_is_silent_its_last_word_on_a_job_stands(tmp_path):
    sights = Sights({"7": JobSight(Phase.QUEUED, evidence="Priority")}, problem="Slurm does not answer")
    assert stand_long_silent(tmp_path, sights) == Standing(Phase.QUEUED, evidence="Priority")


@pytest.mark.parametrize(("sights", "job_id"), [(Sights(), "7"), (Sights(problem="silent"), "n0:12")])
def test_a_job_that_slurm_does_not_know_or_a_process_that_is_gone_is_lost(tmp_path, sights, job_id):
    assert stand_long_silent(tmp_path, sights, job_id).verdict == Verdict.LOST


def test_a_damaged_sweep_is_said_to_be_one(tmp_path):
    study = lay_out(tmp_path, [make_trial("a")])
    publish(study, [make_trial("a")])
    (study / "sweep.json").write_text(json.dumps({"schema": Sweep.SCHEMA, "content": {"entries": [{}]}}))
    with pytest.raises(ArtifactError, match=r"sweep.json does not hold a windtunnel.sweep"):
        read_study(study)


def test_a_job_that_is_to_drive_the_study_is_told(tmp_path, monkeypatch):
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho '77|PENDING||Priority|driver'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    study = lay_out(tmp_path / "results", [make_trial("a")])
    write_driver_job(study, DriverJob("77", "log", "again"))
    assert read_study(study).waiting == "job 77 is to drive it: QUEUED (Priority)"
