import json
import os
import re
import time

import pytest

from fake_trials import make_trial
from watched_study import end, lay_out, publish, start
from windtunnel.cli.main import main
from windtunnel.cli.status import watch_study
from windtunnel.launch.detach import DriverJob, write_driver_job
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.records.trial import Verdict

TRIALS = [make_trial(name) for name in ("tcn one", "tcn two", "tcn three")]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """`results/study`, of which one trial is done, one failed, and one was never begun."""
    monkeypatch.chdir(tmp_path)
    folder = lay_out(tmp_path / "results", TRIALS)
    end(tmp_path / "results", TRIALS[0], Verdict.COMPLETED, "all well")
    failed = end(tmp_path / "results", TRIALS[1], Verdict.FAILED, "rank 0: no such loss")
    failed.rank_log(1, 0).write_text("step 1\nno such loss\n")
    return folder


def kinds(study, trial):
    return [event.kind for event in read_events(trial_folder(study.parent, trial.id).path)]


def test_status_prints_a_board_and_without_a_study_a_line_each(study, capsys):
    assert main(["status", "study"]) == 0
    assert "tcn two    FAILED" in re.sub(" +", " ", capsys.readouterr().out).replace("tcn two ", "tcn two    ")
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("study: 3 trials: 1 COMPLETED, 1 FAILED, 1 NEW")


def test_status_as_json_is_one_document(study, capsys):
    assert main(["status", "study", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == {"COMPLETED": 1, "FAILED": 1, "NEW": 1}
    assert main(["status", "--json"]) == 0
    assert [view["study"] for view in json.loads(capsys.readouterr().out)] == ["study"]


def test_status_finds_a_study_by_its_folder_too(study, capsys, monkeypatch):
    monkeypatch.chdir("/")
    assert main(["status", str(study)]) == 0
    assert main(["status", "study", "--results", str(study.parent)]) == 0
    assert capsys.readouterr().out.count("nobody drives it") == 2


def test_watching_ends_when_nobody_is_left_who_could_change_a_trial(study):
    (view,) = watch_study(study)
    assert view.open == 1
    lease = take_lease(study / ".driver", "study")
    views = watch_study(study, refresh_s=0)
    assert next(views).driver is not None
    lease.release()
    assert next(views).driver is None
    assert next(views, None) is None


def test_retry_withdraws_what_failed_and_unpublishes_the_sweep(study, capsys):
    publish(study, TRIALS[:1])
    (study / "sweep.json").rename(study / "sweep.partial.json")
    assert main(["retry", "study", "--failed"]) == 0
    out = capsys.readouterr().out
    assert f"{TRIALS[1].id} tcn two: FAILED withdrawn" in out
    assert "they run again with: windtunnel sweep study" in out
    assert kinds(study, TRIALS[1])[-1] == "withdrawn"
    assert kinds(study, TRIALS[0])[-1] == "ended"
    assert main(["retry", "study", "--failed"]) == 0
    assert "no verdict to withdraw" in capsys.readouterr().out


def test_retry_is_refused_while_a_driver_lives(study, capsys):
    lease = take_lease(study / ".driver", "study")
    assert main(["retry", "study", "--failed"]) == 2
    assert "is driven by pid" in capsys.readouterr().err
    assert kinds(study, TRIALS[1])[-1] == "ended"
    lease.release()


def test_retry_is_refused_while_slurm_cannot_say_which_jobs_live(study, capsys, monkeypatch):
    squeue = study.parent / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: timed out' >&2\nexit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{study.parent}:{os.environ['PATH']}")
    append_event(trial_folder(study.parent, TRIALS[2].id).path, "submitted", attempt=0, job_id="7")
    assert main(["retry", "study", "--failed"]) == 1
    assert "Slurm does not answer" in capsys.readouterr().err
    assert [kinds(study, trial)[-1] for trial in TRIALS[1:]] == ["ended", "submitted"]


def test_retry_of_nothing_in_particular_is_refused(study, capsys):
    assert main(["retry", "study"]) == 2
    assert "needs --failed, or trials" in capsys.readouterr().err


def test_cancel_writes_a_wish_for_what_is_not_done(study, capsys):
    assert main(["cancel", "study"]) == 0
    assert f"{TRIALS[2].id} tcn three: " in capsys.readouterr().out
    assert kinds(study, TRIALS[2]) == ["cancelling"]
    assert kinds(study, TRIALS[0])[-1] == "ended"


def test_cancel_of_one_trial_leaves_the_others(study, capsys):
    start(study.parent, TRIALS[1], attempt=2)
    assert main(["cancel", "study", "tcn three"]) == 0
    assert "cancelling" not in kinds(study, TRIALS[1])


@pytest.mark.parametrize("command", [["cancel", "study"], ["retry", "study"], ["logs"], ["explain", "trial"]])
def test_an_ambiguous_or_unknown_trial_is_one_message_with_the_candidates(study, capsys, command):
    for word, said in (("tcn t", "may be any of 2"), ("nosuch", "is not in")):
        assert main([*command, word]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert TRIALS[2].id in err
        assert err.count("windtunnel:") == 1


def test_logs_prints_a_ranks_log_whole_or_its_end(study, capfdbinary):
    assert main(["logs", "tcn two"]) == 0
    assert capfdbinary.readouterr().out == b"step 1\nno such loss\n"
    assert main(["logs", TRIALS[1].id, "--study", "study", "--lines", "1", "--attempt", "1", "--rank", "0"]) == 0
    assert capfdbinary.readouterr().out == b"no such loss\n"


def test_explain_tells_a_trials_history(study, capsys):
    assert main(["explain", "trial", "tcn two"]) == 0
    assert "That is final. `windtunnel retry` withdraws it" in capsys.readouterr().out


@pytest.fixture
def damaged(study):
    """A study of an older version, and one cut short, before and behind the whole one."""
    for name, text in (("old", '{"schema": "windtunnel.plan/0"}'), ("torn", '{"schema": "wind')):
        (study.parent / name).mkdir()
        (study.parent / name / "plan.json").write_text(text)
    return study


def test_a_damaged_study_is_one_line_of_the_others_status(damaged, capsys):
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "study: 3 trials" in out
    assert "old: results/old/plan.json has schema 'windtunnel.plan/0', expected" in out
    assert "torn: results/torn/plan.json is damaged" in out


def test_a_damaged_study_leaves_json_of_the_others_whole(damaged, capsys):
    assert main(["status", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [view["study"] for view in json.loads(out)] == ["study"]
    assert err.count("plan.json") == 2


@pytest.mark.parametrize("command", [["logs"], ["explain", "trial"]])
def test_a_trial_is_found_beside_a_damaged_study(damaged, capfd, command):
    assert main([*command, "tcn two"]) == 0
    out, err = capfd.readouterr()
    assert "no such loss" in out
    assert err.count("plan.json") == 2


def test_a_damaged_study_that_is_asked_for_is_refused(damaged, capsys):
    assert main(["status", "torn"]) == 1
    assert main(["explain", "trial", "tcn two", "--study", "torn"]) == 1
    assert capsys.readouterr().err.count("torn/plan.json is damaged") == 2


def test_an_unknown_study_is_refused_with_the_known_ones(study, capsys):
    assert main(["status", "nosuch"]) == 2
    assert "no plan of study 'nosuch' in results (known: study)" in capsys.readouterr().err
    assert main(["status", "quickstart"]) == 2
    assert "`windtunnel sweep quickstart` makes it" in capsys.readouterr().err


def test_a_waiting_driver_that_slurm_refuses_to_cancel_is_told(study, tmp_path, monkeypatch, capsys):
    write_driver_job(study, DriverJob("77", "log", "again"))
    for name, script in {
        "squeue": "echo '77|PENDING||Priority|driver'",
        "scancel": "echo 'scancel: error: Kill job error on job id 77: Access/permission denied' >&2; exit 1",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["cancel", "study"]) != 0
    err = capsys.readouterr().err
    assert "job 77, which waits to drive the study, was not cancelled" in err
    assert "Access/permission denied" in err


def test_a_driver_that_has_no_plan_yet_is_said_to_be_at_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lease = take_lease(tmp_path / "results/soon/.driver", "study soon")
    assert main(["status", "soon"]) == 2
    assert f"study soon has no plan yet: its driver, pid {os.getpid()} on host" in capsys.readouterr().err
    assert main(["status"]) == 0
    assert "study soon has no plan yet" in capsys.readouterr().out
    lease.release()
    assert main(["status"]) == 0
    assert "no study has a plan" in capsys.readouterr().out


def test_watching_waits_for_a_plan_while_somebody_makes_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lease = take_lease(tmp_path / "results/soon/.driver", "study soon")
    looks: list[float] = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            lease.release()

    monkeypatch.setattr(time, "sleep", pause)
    assert main(["status", "soon", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == []
    assert main(["status", "soon", "--watch"]) == 2
    assert len(looks) == 3
    err = capsys.readouterr().err
    assert err.count("its driver, pid") == 1
    assert "no plan of study 'soon'" in err


def test_a_study_with_a_name_of_any_length_is_a_mistake_of_the_users(study, capsys):
    assert main(["status", "a" * 300]) == 2
    assert "File name too long: correct the name" in capsys.readouterr().err


def test_a_damaged_sweep_is_named_with_the_fix(study, capsys):
    publish(study, TRIALS)
    (study / "sweep.json").write_text("{")
    assert main(["status", "study"]) == 1
    assert "remove it: `windtunnel sweep` makes it again" in capsys.readouterr().err
