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
