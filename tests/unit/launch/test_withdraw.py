import json
import os
from pathlib import Path

import pytest

from fake_backend import end_attempt, start_attempt
from fake_trials import make_outcome, make_trial
from windtunnel.artifacts import write_artifact
from windtunnel.errors import BusyError, CommandError
from windtunnel.launch.withdraw import cancel_trials, withdraw_trials
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase, Standing, reconcile
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import PARTIAL_SWEEP, Verdict

TRIAL, OTHER = make_trial("a"), make_trial("b")


def test_a_withdrawn_trial_is_new_again_and_its_sweep_no_longer_published(tmp_path: Path) -> None:
    folder = submit(tmp_path)
    end_attempt(folder, start_attempt(folder, "7"), Verdict.FAILED, job_id="7")
    sweep = tmp_path / "study" / "sweep.json"
    sweep.parent.mkdir()
    sweep.write_text("{}")
    withdraw_trials(tmp_path, [TRIAL], reason="retry --failed", sweep=sweep)
    assert stand(folder).phase == Phase.NEW
    assert (sweep.exists(), sweep.with_name(PARTIAL_SWEEP).exists()) == (False, True)
    assert folder.end(1).exists()


def test_what_is_done_or_was_never_begun_is_not_withdrawn(tmp_path: Path) -> None:
    folder = submit(tmp_path)
    write_artifact(folder.done, make_outcome(TRIAL.id))
    withdraw_trials(tmp_path, [TRIAL, OTHER], reason="retry")
    assert stand(folder).verdict == Verdict.COMPLETED
    assert kinds(folder) == ["submitted"]
    assert not trial_folder(tmp_path, OTHER.id).path.exists()


def test_nothing_is_withdrawn_under_a_live_driver(tmp_path: Path) -> None:
    folder = submit(tmp_path)
    lease = take_lease(tmp_path / "study" / ".lease", "study made_up")
    with pytest.raises(BusyError, match="study study is driven by pid"):
        withdraw_trials(tmp_path, [TRIAL], reason="retry", sweep=tmp_path / "study" / "sweep.json")
    assert kinds(folder) == ["submitted"]
    lease.release()


def test_a_slurm_job_is_cancelled_and_the_wish_written_down_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_scancel(tmp_path, monkeypatch)
    folder = submit(tmp_path)
    assert cancel(tmp_path) == {TRIAL.id: "cancelled job 7"}
    assert (tmp_path / "cancelled").read_text() == "7\n"
    assert kinds(folder) == ["submitted", "cancelling"]
    assert stand(folder, JobSight(Phase.ENDED, Verdict.PREEMPTED)).verdict == Verdict.CANCELLED


def test_what_slurm_refuses_to_cancel_is_told_and_the_wish_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_scancel(tmp_path, monkeypatch, "echo 'scancel: error: Access/permission denied' >&2; exit 1")
    folder = submit(tmp_path)
    with pytest.raises(CommandError, match="Access/permission denied"):
        cancel(tmp_path)
    assert kinds(folder)[-1] == "cancelling"


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.OOM, Verdict.CANCELLED])
def test_what_has_ended_for_good_is_not_cancelled(tmp_path: Path, verdict: Verdict) -> None:
    folder = submit(tmp_path)
    append_event(folder.path, "verdict", attempt=1, verdict=verdict)
    assert cancel(tmp_path) == {TRIAL.id: f"already {verdict}: nothing to cancel"}
    assert kinds(folder) == ["submitted", "verdict"]


def test_a_trial_that_waits_for_its_next_try_is_left_to_the_driver(tmp_path: Path) -> None:
    folder = submit(tmp_path)
    append_event(folder.path, "verdict", attempt=1, verdict=Verdict.PREEMPTED)
    assert cancel(tmp_path)[TRIAL.id].startswith("not in the queue")
    assert stand(folder).verdict == Verdict.CANCELLED


def test_a_job_whose_id_was_never_written_down_is_found_by_its_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = put_scancel(tmp_path, monkeypatch)
    write_command(commands / "squeue", "printf '9_0|PENDING||None|x\\n9_1|PENDING||None|x\\n'")
    folder = trial_folder(tmp_path, TRIAL.id)
    folder.path.mkdir(parents=True)
    append_event(folder.path, "submitting", attempt=0, submission="x", index=1)
    assert cancel(tmp_path) == {TRIAL.id: "cancelled job 9_1"}


def test_slurm_is_asked_once_for_all_jobs_of_a_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = put_scancel(tmp_path, monkeypatch)
    asked = tmp_path / "asked"
    write_command(commands / "squeue", f"echo x >>{asked}; printf '9_0|PENDING||None|x\\n9_1|PENDING||None|x\\n'")
    for index, trial in enumerate((TRIAL, OTHER)):
        folder = trial_folder(tmp_path, trial.id)
        folder.path.mkdir(parents=True)
        append_event(folder.path, "submitting", attempt=0, submission="x", index=index)
    done = cancel_trials(tmp_path, [TRIAL, OTHER], study="made_up", jobs_dir=tmp_path / "jobs")
    assert done == {TRIAL.id: "cancelled job 9_0", OTHER.id: "cancelled job 9_1"}
    assert asked.read_text().split() == ["x"]


def test_a_job_of_several_trials_goes_on_for_those_that_nobody_cancels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_scancel(tmp_path, monkeypatch)
    folders = [trial_folder(tmp_path, trial.id) for trial in (TRIAL, OTHER)]
    for folder in folders:
        folder.path.mkdir(parents=True)
        append_event(folder.path, "submitting", attempt=0, submission="x", index=0)
        append_event(folder.path, "submitted", attempt=0, submission="x", job_id="7")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "x.json").write_text(json.dumps([["python", *(str(folder.path) for folder in folders)]]))
    assert "goes on for its others" in cancel(tmp_path)[TRIAL.id]
    assert not (tmp_path / "cancelled").exists()
    both = cancel_trials(tmp_path, [TRIAL, OTHER], study="made_up", jobs_dir=tmp_path / "jobs")
    assert set(both.values()) == {"cancelled job 7"}


def test_a_job_that_another_study_submitted_goes_on_for_those_that_nobody_cancels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_scancel(tmp_path, monkeypatch)
    for trial in (TRIAL, OTHER):
        submit_pack(tmp_path, trial)
    assert "goes on for its others" in cancel(tmp_path)[TRIAL.id]
    assert not (tmp_path / "cancelled").exists()
    done = cancel_trials(tmp_path, [OTHER], study="made_up", jobs_dir=tmp_path / "jobs")
    assert done == {OTHER.id: "cancelled job 7"}  # the last one that wanted it


def test_a_job_whose_id_is_written_down_while_its_end_is_wished_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_scancel(tmp_path, monkeypatch)
    folder = trial_folder(tmp_path, TRIAL.id)
    folder.path.mkdir(parents=True)

    def submit_first() -> str:
        append_event(folder.path, "submitted", attempt=0, job_id="7")
        return "rosa"

    monkeypatch.setattr("getpass.getuser", submit_first)
    assert cancel(tmp_path) == {TRIAL.id: "cancelled job 7"}


def test_a_process_of_another_host_is_not_stopped_from_here(tmp_path: Path) -> None:
    submit(tmp_path, job_id="elsewhere:12")
    assert cancel(tmp_path) == {TRIAL.id: "process 12 does not run here: cancel it on host elsewhere"}


def submit(store: Path, *, job_id: str = "7") -> TrialFolder:
    folder = trial_folder(store, TRIAL.id)
    folder.path.mkdir(parents=True)
    append_event(folder.path, "submitted", attempt=0, job_id=job_id)
    return folder


def submit_pack(store: Path, trial: PlannedTrial) -> None:
    folder = trial_folder(store, trial.id)
    folder.path.mkdir(parents=True)
    pack = [TRIAL.id, OTHER.id]
    append_event(folder.path, "submitting", attempt=0, submission="x", index=0, jobs_dir="/elsewhere", pack=pack)
    append_event(folder.path, "submitted", attempt=0, submission="x", job_id="7")


def cancel(store: Path) -> dict[str, str]:
    return cancel_trials(store, [TRIAL], study="made_up", jobs_dir=store / "jobs")


def stand(folder: TrialFolder, job: JobSight = UNSEEN) -> Standing:
    return reconcile(read_facts(folder, steps=3), job, now=1e12, lost_after_s=60)


def kinds(folder: TrialFolder) -> list[str]:
    return [event.kind for event in read_events(folder.path)]


def put_scancel(store: Path, monkeypatch: pytest.MonkeyPatch, script: str = "") -> Path:
    folder = store / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    write_command(folder / "scancel", script or f'echo "$@" >> {store}/cancelled')
    return folder


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
