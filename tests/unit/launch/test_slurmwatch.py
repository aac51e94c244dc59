import os
from pathlib import Path

import pytest

from windtunnel.launch.slurmwatch import SlurmWatch
from windtunnel.ledger.reconcile import Phase
from windtunnel.records.trial import Verdict


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins for Slurm's commands, first on PATH; without accounting at first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    write_command(tmp_path / "squeue", "")
    write_command(tmp_path / "sacct", "", code=1, stderr="Slurm accounting storage is disabled")
    write_command(tmp_path / "scancel", "")
    return tmp_path


def test_queue_and_accounting_together_know_every_job(commands: Path) -> None:
    write_command(commands / "squeue", "7_0|RUNNING|n0|None|x\n7_1|PENDING||Resources|x\n")
    write_command(commands / "sacct", "5|NODE_FAIL|1:0|40|n3|None\n")
    sights = SlurmWatch(poll_s=0.0, say=print).look(["7_0", "7_1", "5"])
    assert [sights[job].phase for job in ("7_0", "7_1", "5")] == [Phase.RUNNING, Phase.QUEUED, Phase.ENDED]
    assert sights["5"].verdict == Verdict.NODE_FAIL
    assert sights["5"].evidence == "Slurm says NODE_FAIL of job 5 (on n3, exit code 1:0)"


def test_a_job_that_nobody_knows_is_unsure_where_there_is_no_accounting(commands: Path) -> None:
    # Slurm 22.05.8, for a single job that its controller has forgotten
    write_command(commands / "squeue", "", code=1, stderr="slurm_load_jobs error: Invalid job id specified")
    assert SlurmWatch(poll_s=0.0, say=print).look(["5"])["5"].phase == Phase.UNSURE


def test_jobs_are_taken_to_go_on_while_slurm_does_not_answer(commands: Path) -> None:
    said: list[str] = []
    watch = SlurmWatch(poll_s=0.0, say=said.append)
    write_command(commands / "squeue", "7|RUNNING|n0|None|x\n")
    watch.look(["7"])
    write_command(commands / "squeue", "", code=1, stderr="Unable to contact slurm controller")
    assert [watch.look(["7"])["7"].phase for _ in range(2)] == [Phase.RUNNING, Phase.RUNNING]
    assert len(said) == 1
    assert "Slurm does not answer" in said[0]


@pytest.mark.parametrize(("settle_s", "phase"), [(60.0, Phase.RUNNING), (0.0, Phase.ENDED)])
def test_an_end_counts_once_the_jobs_records_had_time_to_arrive(
    commands: Path, settle_s: float, phase: Phase
) -> None:
    watch = SlurmWatch(poll_s=0.0, say=print, settle_s=settle_s)
    watch.expect(["7"])
    write_command(commands / "squeue", "7|TIMEOUT|n0|TimeLimit|x\n")
    assert watch.look(["7"])["7"].phase == phase


def test_an_end_of_long_ago_counts_at_once(commands: Path) -> None:
    write_command(commands / "squeue", "7|CANCELLED|n0|None|x\n")
    assert SlurmWatch(poll_s=30.0, say=print).look(["7"])["7"].verdict == Verdict.CANCELLED


def test_a_job_that_can_never_start_is_cancelled_with_its_reason(commands: Path) -> None:
    write_command(commands / "squeue", "7|PENDING||PartitionNodeLimit|x\n")
    (commands / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {commands}/cancelled\n')
    sight = SlurmWatch(poll_s=30.0, say=print).look(["7"])["7"]
    assert sight.verdict == Verdict.CANCELLED
    assert "can never start job 7 as it was asked for (PartitionNodeLimit)" in sight.evidence
    assert (commands / "cancelled").read_text() == "7\n"


def test_slurm_is_asked_no_oftener_than_agreed(commands: Path) -> None:
    (commands / "squeue").write_text(f"#!/bin/sh\necho x >> {commands}/calls\necho '7|RUNNING|n0|None|x'\n")
    watch = SlurmWatch(poll_s=30.0, say=print)
    for _ in range(5):
        watch.look(["7"])
    assert (commands / "calls").read_text() == "x\n"


def write_command(path: Path, stdout: str, *, code: int = 0, stderr: str = "") -> None:
    path.write_text(f"#!/bin/sh\nprintf '%s' '{stdout}'\nprintf '%s' '{stderr}' >&2\nexit {code}\n")
    path.chmod(0o755)
