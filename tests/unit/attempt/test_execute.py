import time
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_trial, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.execute import Execution, is_near_limit
from windtunnel.attempt.plan import LaunchPlan
from windtunnel.attempt.program import AttemptFiles
from windtunnel.records.trial import TrialConfig

NOW = time.time()


@pytest.fixture
def execution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Execution:
    """One trial of ten minutes in a job whose time is up in 100 s."""
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(NOW) + 100))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    folder = write_trial(tmp_path, make_trial(time_min=10))
    plan = LaunchPlan((), ("n0",), None, None)
    return Execution(plan, read_artifact(folder.config, TrialConfig), AttemptFiles(folder, 1), slurm=True)


def test_a_signal_is_judged_by_the_jobs_clock_however_late_the_attempt_began(execution: Execution) -> None:
    assert is_near_limit(execution, started_at=NOW - 5, signalled_at=NOW)
    assert not is_near_limit(execution, started_at=NOW - 5, signalled_at=NOW - 100)


def test_a_job_that_is_not_told_its_end_is_as_old_as_its_process(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_END_TIME")
    monkeypatch.delenv("SLURM_JOB_START_TIME", raising=False)
    assert not is_near_limit(execution, started_at=NOW, signalled_at=NOW + 5)
    assert is_near_limit(execution, started_at=NOW + 300, signalled_at=NOW + 600 - 120)


def test_a_trial_of_a_pack_is_judged_by_its_own_time_and_not_by_the_jobs(execution: Execution) -> None:
    packed = replace(execution, plan=replace(execution.plan, time_limit_s=600.0))
    assert not is_near_limit(packed, started_at=NOW - 5, signalled_at=NOW)
    assert is_near_limit(packed, started_at=NOW - 550, signalled_at=NOW)


def test_without_slurm_no_signal_means_that_time_is_up(execution: Execution) -> None:
    assert not is_near_limit(replace(execution, slurm=False), started_at=NOW - 599, signalled_at=NOW)


@pytest.mark.parametrize("after_s", [20, 60, 100])
@pytest.mark.parametrize("ended", [False, True])
def test_in_a_short_job_the_controllers_word_and_no_clock_tells_the_warning_from_a_preemption(
    execution: Execution, monkeypatch: pytest.MonkeyPatch, after_s: int, ended: bool
) -> None:
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(NOW) + 120))
    short = replace(execution.config.trial, shape=replace(execution.config.trial.shape, time_min=2))
    execution = replace(execution, config=replace(execution.config, trial=short))
    told = is_near_limit(execution, started_at=NOW, signalled_at=NOW + after_s, ask=lambda _: ended)
    assert told is not ended


def test_a_signal_long_before_the_end_is_no_warning_and_nobody_is_asked(execution: Execution) -> None:
    def ask(_: object) -> bool:
        raise AssertionError("one call a signal would be a thousand in a cluster that empties itself")

    assert not is_near_limit(execution, started_at=NOW, signalled_at=NOW - 100, ask=ask)
