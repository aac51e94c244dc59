"""Which verdicts are final, what is published, and what a full disk or an early stop leaves."""

from pathlib import Path

import pytest

from fake_disk import at_most_bytes
from fake_driver import run_study, write_study
from fake_trials import LOCAL, make_outcome, make_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import IncompleteError, StorageError
from windtunnel.launch.course import is_final
from windtunnel.launch.run import publish_sweep
from windtunnel.ledger.layout import trial_folder
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep, SweepEntry, Verdict
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings

FINAL = {Verdict.COMPLETED, Verdict.OOM, Verdict.PRUNED, Verdict.SKIPPED, Verdict.FAILED}
SETTINGS = SweepStageSettings(study="made_up", cluster=LOCAL, sweep=SweepSettings())
STRICT = SETTINGS.model_copy(update={"sweep": SweepSettings(strict=True)})


@pytest.mark.parametrize("verdict", list(Verdict))
def test_which_verdicts_are_final(verdict: Verdict) -> None:
    assert is_final(verdict, strict=False) == (verdict in FINAL)
    assert is_final(verdict, strict=True) == (verdict in FINAL - {Verdict.FAILED})


def test_all_final_is_published_and_the_partial_one_goes(tmp_path: Path) -> None:
    (tmp_path / PARTIAL_SWEEP).write_text("{}")
    sweep = make_sweep(Verdict.COMPLETED, Verdict.FAILED, Verdict.OOM)
    publish_sweep(sweep, SETTINGS, tmp_path / "sweep.json", pending=0)
    assert read_artifact(tmp_path / "sweep.json", Sweep) == sweep
    assert not (tmp_path / PARTIAL_SWEEP).exists()


@pytest.mark.parametrize("verdict", [Verdict.TIMEOUT, Verdict.CANCELLED, Verdict.LOST, Verdict.NODE_FAIL])
def test_one_that_is_not_final_leaves_a_partial_sweep_and_none_of_before(tmp_path: Path, verdict: Verdict) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(IncompleteError, match=f"1 of 2 trials have no final verdict.*(?s:.*){verdict}: why"):
        publish_sweep(make_sweep(Verdict.COMPLETED, verdict), SETTINGS, tmp_path / "sweep.json", pending=0)
    assert not (tmp_path / "sweep.json").exists()
    assert len(read_artifact(tmp_path / PARTIAL_SWEEP, Sweep).entries) == 2


def test_strict_keeps_a_sweep_with_a_failed_trial_unfinished(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError):
        publish_sweep(make_sweep(Verdict.FAILED), STRICT, tmp_path / "sweep.json", pending=0)


def test_a_sweep_that_was_stopped_before_a_trial_began_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="and 3 were not begun"):
        publish_sweep(make_sweep(), SETTINGS, tmp_path / "sweep.json", pending=3)
    assert not (tmp_path / "sweep.json").exists()


def test_a_trial_that_another_study_completed_is_not_run_again(tmp_path: Path) -> None:
    trial = make_trial("a")
    write_artifact(trial_folder(tmp_path, trial.id).done, make_outcome(trial.id))
    write_study(tmp_path, [trial], SETTINGS)
    assert [(entry.verdict, entry.attempts) for entry in run_study(tmp_path).entries] == [(Verdict.COMPLETED, 0)]


def test_a_disk_that_fills_up_ends_the_sweep_with_one_message_and_the_same_command_goes_on(tmp_path: Path) -> None:
    trial = make_trial("a")
    write_study(tmp_path, [trial], SETTINGS)
    with at_most_bytes(500), pytest.raises(StorageError, match="make room"):  # enough for a lease, not for more
        run_study(tmp_path)
    assert list((tmp_path / "study").glob("sweep*.json")) == []
    write_artifact(trial_folder(tmp_path, trial.id).done, make_outcome(trial.id))
    assert run_study(tmp_path).entries[0].verdict == Verdict.COMPLETED


def make_sweep(*verdicts: Verdict) -> Sweep:
    entries = tuple(
        SweepEntry(str(i), f"t{i}", {}, verdict, "why", 1, 0.0, None) for i, verdict in enumerate(verdicts)
    )
    return Sweep("made_up", "trials", entries, {})
