import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import fake_driver
from fake_driver import run_study, write_study
from fake_trials import LOCAL, make_identity, make_trial
from windtunnel.artifacts import read_artifact
from windtunnel.errors import BusyError, IncompleteError, StudyError
from windtunnel.launch.withdraw import cancel_trials
from windtunnel.ledger.layout import read_attempt_numbers, trial_folder
from windtunnel.ledger.lease import read_live_holder, take_lease
from windtunnel.ledger.log import read_events
from windtunnel.records.plan import Identity, PlannedTrial
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep, Verdict
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import RetrySettings, SweepSettings

FAST = SweepSettings(marker_poll_s=0.1, poll_s=0.5, lost_after_s=5.0)


def test_every_trial_gets_its_verdict_and_one_failure_loses_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = [make_trial("a"), make_trial("b", behaviour="fail"), make_trial("c", behaviour="out of memory")]
    sweep = sweep_here(tmp_path, trials)
    assert [entry.verdict for entry in sweep.entries] == [Verdict.COMPLETED, Verdict.FAILED, Verdict.OOM]
    assert read_artifact(tmp_path / "study" / "sweep.json", Sweep) == sweep
    assert sweep.entries[0].node_seconds > 0
    out = capsys.readouterr().out
    assert "trial 2 of 3: b: FAILED: rank 0: ValueError: no such loss" in out
    assert "trial 1 of 3: a: COMPLETED" in out


def test_the_same_command_again_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = [make_trial("a"), make_trial("b", behaviour="fail")]
    first = sweep_here(tmp_path, trials)
    again = sweep_here(tmp_path, trials)
    assert again == first
    assert [read_attempt_numbers(trial_folder(tmp_path, trial.id)) for trial in trials] == [[1], [1]]
    assert "trial 1 of 2: a: already COMPLETED" in capsys.readouterr().out


def test_strict_tries_a_failed_trial_again_with_the_next_command(tmp_path: Path) -> None:
    trials = [make_trial("b", behaviour="fail")]
    strict = FAST.model_copy(update={"strict": True})
    for attempt in (1, 2):
        with pytest.raises(IncompleteError, match="no such loss"):
            sweep_here(tmp_path, trials, sweep=strict)
        assert read_attempt_numbers(trial_folder(tmp_path, trials[0].id))[-1] == attempt
    assert not (tmp_path / "study" / "sweep.json").exists()
    assert read_artifact(tmp_path / "study" / PARTIAL_SWEEP, Sweep).entries[0].verdict == Verdict.FAILED


def test_a_lost_attempt_is_tried_again_from_its_checkpoint(tmp_path: Path) -> None:
    sweep = sweep_here(tmp_path, [make_trial("k", behaviour="killed at first")])
    assert (sweep.entries[0].verdict, sweep.entries[0].attempts) == (Verdict.COMPLETED, 2)
    assert not (tmp_path / "study" / PARTIAL_SWEEP).exists()


def test_attempts_are_counted_on_disk_and_limited(tmp_path: Path) -> None:
    once = FAST.model_copy(update={"retries": RetrySettings(lost=0)})
    with pytest.raises(IncompleteError, match="SIGKILL"):
        sweep_here(tmp_path, [make_trial("k", behaviour="killed at first")], sweep=once)
    partial = read_artifact(tmp_path / "study" / PARTIAL_SWEEP, Sweep)
    assert (partial.entries[0].verdict, partial.entries[0].attempts) == (Verdict.LOST, 1)


def test_an_error_is_tried_again_when_asked_and_the_report_says_which_budget_was_used_up(tmp_path: Path) -> None:
    asked = FAST.model_copy(update={"retries": RetrySettings(failed=1)})
    entry = sweep_here(tmp_path, [make_trial("b", behaviour="fail")], sweep=asked).entries[0]
    assert (entry.verdict, entry.attempts) == (Verdict.FAILED, 2)
    assert entry.evidence.endswith("ValueError: no such loss; its one retry after FAILED is used up")


def test_a_trial_cancelled_from_elsewhere_stays_so_until_the_next_command(tmp_path: Path) -> None:
    trials = [make_trial("h", behaviour="hang"), make_trial("a")]
    driver = start_driver(tmp_path, trials)
    folder = trial_folder(tmp_path, trials[0].id)
    wait_until(lambda: read_live_holder(folder.lease) is not None and folder.rank_log(1, 0).exists())
    told = cancel_trials(tmp_path, trials[:1], study="made_up", jobs_dir=tmp_path / "study" / "jobs")
    assert told[trials[0].id].startswith("stopped process")
    assert driver.wait(120) == 1
    partial = read_artifact(tmp_path / "study" / PARTIAL_SWEEP, Sweep)
    assert [entry.verdict for entry in partial.entries] == [Verdict.CANCELLED, Verdict.COMPLETED]
    assert partial.entries[0].evidence.startswith("cancelled by ")


def test_at_most_local_trials_run_at_once(tmp_path: Path) -> None:
    trials = [make_trial(name, step_s=0.2) for name in "abc"]
    sweep_here(tmp_path, trials)
    spans = sorted(_span(tmp_path, trial) for trial in trials)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


def test_a_second_driver_of_the_study_is_refused_by_name(tmp_path: Path) -> None:
    lease = take_lease(tmp_path / "study" / ".lease", "study made_up")
    with pytest.raises(BusyError, match=rf"study made_up is driven by pid {os.getpid()} on host .* since"):
        sweep_here(tmp_path, [make_trial("a")])
    lease.release()


def test_a_plan_of_other_code_is_refused_before_anything_is_submitted(tmp_path: Path) -> None:
    old = Identity("d" * 64, "0" * 64, make_identity().torch_version)
    with pytest.raises(StudyError, match="plan the study again"):
        sweep_here(tmp_path, [make_trial("a")], identity=old)
    assert not (tmp_path / "trials").exists()


def test_a_plan_without_trials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has no trials"):
        sweep_here(tmp_path, [])


def test_the_same_command_finishes_the_study_after_its_whole_tree_was_killed(tmp_path: Path) -> None:
    trials = [make_trial("a"), make_trial("b", steps=30, step_s=0.2)]
    driver = start_driver(tmp_path, trials)
    saved = trial_folder(tmp_path, trials[1].id).path / "fake_step"
    wait_until(lambda: saved.exists() and int(saved.read_text()) >= 2)
    kill_tree(driver.pid)
    driver.wait()
    sweep = sweep_here(tmp_path, trials)
    assert [(entry.verdict, entry.attempts) for entry in sweep.entries] == [
        (Verdict.COMPLETED, 1),
        (Verdict.COMPLETED, 2),
    ]
    assert sweep.entries[1].outcome is not None
    assert (sweep.entries[1].outcome.resumed_from_step or 0) >= 2
    assert sweep.entries[1].node_seconds > 0


def test_a_trial_that_outlived_its_driver_is_watched_and_not_run_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = [make_trial("b", steps=20, step_s=0.2)]
    driver = start_driver(tmp_path, trials)
    saved = trial_folder(tmp_path, trials[0].id).path / "fake_step"
    wait_until(saved.exists)
    driver.kill()
    driver.wait()
    sweep = sweep_here(tmp_path, trials)
    assert (sweep.entries[0].verdict, sweep.entries[0].attempts) == (Verdict.COMPLETED, 1)
    assert "already under way" in capsys.readouterr().out


def test_a_stopped_driver_stops_its_local_trials(tmp_path: Path) -> None:
    trials = [make_trial("h", behaviour="hang"), make_trial("a")]
    driver = start_driver(tmp_path, trials)
    folder = trial_folder(tmp_path, trials[0].id)
    wait_until(lambda: read_live_holder(folder.lease) is not None and folder.rank_log(1, 0).exists())
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(120) == 1
    assert read_live_holder(folder.lease) is None
    partial = read_artifact(tmp_path / "study" / PARTIAL_SWEEP, Sweep)
    assert [entry.verdict for entry in partial.entries] == [Verdict.CANCELLED, Verdict.CANCELLED]


def sweep_here(
    root: Path, trials: Sequence[PlannedTrial], *, sweep: SweepSettings = FAST, identity: Identity | None = None
) -> Sweep:
    settings = SweepStageSettings(study="made_up", cluster=LOCAL, sweep=sweep)
    write_study(root, list(trials), settings, identity=identity)
    return run_study(root)


def start_driver(root: Path, trials: Sequence[PlannedTrial]) -> "subprocess.Popen[bytes]":
    """The same sweep in a process of its own."""
    settings = SweepStageSettings(study="made_up", cluster=LOCAL, sweep=FAST)
    write_study(root, list(trials), settings)
    return subprocess.Popen([sys.executable, fake_driver.__file__, str(root)])


def kill_tree(pid: int) -> None:
    """SIGKILL to a process and all its descendants, found before any is killed."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    for each in found:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(fact: Callable[[], bool], timeout_s: float = 180.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not fact():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def _span(root: Path, trial: PlannedTrial) -> tuple[float, float]:
    at = {event.kind: event.at for event in read_events(trial_folder(root, trial.id).path)}
    return at["started"], at["ended"]
