from pathlib import Path

import pytest

from windtunnel.slurm.notice import parse_is_ended, read_is_ended

# What 22.05 prints of a job, inside it, when its script is told to stop.
WARNED = "JobId=1 JobState=RUNNING Reason=None Requeue=1 Restarts=0 TimeLimit=00:01:00 PreemptTime=None"
PREEMPTED = "JobId=4 JobState=COMPLETING Reason=None Restarts=0 PreemptTime=2026-11-30T19:11:07"
REQUEUED = "JobId=3 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 RunTime=00:00:00"
GRACE = "JobId=5 JobState=RUNNING Reason=None Restarts=0 PreemptTime=2026-11-30T19:11:32"
TIMED_OUT = "JobId=1 JobState=COMPLETING Reason=TimeLimit Restarts=0 PreemptTime=None"
ENDED = "JobId=1 JobState=TIMEOUT Reason=None PreemptTime=None"


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        (WARNED, False),
        (PREEMPTED, True),
        (REQUEUED, True),
        (GRACE, True),
        (TIMED_OUT, False),
        (ENDED, False),
        ("slurm_load_jobs error: Invalid job id specified", None),
        ("", None),
    ],
)
def test_only_a_warning_leaves_a_job_running(text: str, ended: bool | None) -> None:
    assert parse_is_ended(text) is ended


def test_a_job_is_asked_for_by_its_own_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\n[ "$4" = 7 ] && echo "{PREEMPTED}"\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert read_is_ended({"SLURM_JOB_ID": "7"}) is True
    assert read_is_ended({"SLURM_JOB_ID": "8"}) is None


def test_without_a_job_or_an_answer_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_is_ended({"SLURM_JOB_ID": "7"}) is None
    assert read_is_ended({}) is None
