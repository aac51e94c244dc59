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
    write_command(commands / "sacct", "5|NODE_FAIL|1:0|40|n3|1764518400|None\n")
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


@pytest.mark.parametrize("problem", ["sleep 9", "echo 'scancel: error: Unable to contact controller' >&2; exit 1"])
def test_a_job_is_given_up_only_once_scancel_took_it(
    commands: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    monkeypatch.setattr("windtunnel.slurm.queue._TIMEOUT_S", 0.5)
    write_command(commands / "squeue", "7|PENDING||PartitionNodeLimit|x\n")
    (commands / "scancel").write_text(f"#!/bin/sh\n{problem}\n")
    watch = SlurmWatch(poll_s=0.0, say=lambda line: None)
    assert watch.look(["7"])["7"].phase == Phase.QUEUED
    write_command(commands / "scancel", "")
    monkeypatch.setattr("windtunnel.slurm.queue._TIMEOUT_S", 60.0)
    assert watch.look(["7"])["7"].verdict == Verdict.CANCELLED


def test_slurm_is_asked_no_oftener_than_agreed(commands: Path) -> None:
    (commands / "squeue").write_text(f"#!/bin/sh\necho x >> {commands}/calls\necho '7|RUNNING|n0|None|x'\n")
    watch = SlurmWatch(poll_s=30.0, say=print)
    for _ in range(5):
        watch.look(["7"])
    assert (commands / "calls").read_text() == "x\n"


def test_all_jobs_of_a_study_are_one_squeue_and_no_sacct(commands: Path) -> None:
    lines = "".join(f"7_{task}|RUNNING|n0|None|x\\n" for task in range(1000))
    (commands / "squeue").write_text(f"#!/bin/sh\necho \"$@\" >> {commands}/calls\nprintf '{lines}'\n")
    (commands / "sacct").write_text(f"#!/bin/sh\necho x >> {commands}/accounted\n")
    watch = SlurmWatch(poll_s=0.0, say=print)
    ids = [f"7_{task}" for task in range(1000)]
    for _ in range(3):
        assert {sight.phase for sight in watch.look(ids).values()} == {Phase.RUNNING}
    calls = (commands / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert all("--me" in call.split() for call in calls)
    assert not (commands / "accounted").exists()


def test_jobs_of_another_user_of_the_store_are_asked_for_by_id(commands: Path) -> None:
    write_squeue(commands, mine="", others="7|RUNNING|n0|None|x")
    watch = SlurmWatch(poll_s=0.0, say=print)
    for _ in range(3):
        assert watch.look(["7"])["7"].phase == Phase.RUNNING
    assert ["--me" in line for line in (commands / "calls").read_text().splitlines()] == [True, False, False, False]


def test_sacct_is_asked_once_for_a_job_whose_end_it_told(commands: Path) -> None:
    (commands / "sacct").write_text(
        f"#!/bin/sh\necho x >> {commands}/accounted\necho '7|FAILED|1:0|4|n3|1764518400|None'\n"
    )
    watch = SlurmWatch(poll_s=0.0, say=print)
    for _ in range(3):
        assert watch.look(["7"])["7"].phase == Phase.ENDED
    assert (commands / "accounted").read_text() == "x\n"


def test_a_site_without_accounting_is_asked_for_it_once(commands: Path) -> None:
    (commands / "sacct").write_text(
        f"#!/bin/sh\necho x >> {commands}/accounted\necho 'Slurm accounting storage is disabled' >&2; exit 1\n"
    )
    watch = SlurmWatch(poll_s=0.0, say=print)
    for _ in range(3):
        assert watch.look(["7"])["7"].phase == Phase.UNSURE
    assert (commands / "accounted").read_text() == "x\n"


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "REQUEUED"])
def test_accounting_alone_shows_no_life(commands: Path, state: str) -> None:
    # A job that ended while slurmdbd was away stays RUNNING there; REQUEUED is the record of an earlier run.
    write_command(commands / "sacct", f"7|{state}|0:0|40|n3|Unknown|None\n")
    sight = SlurmWatch(poll_s=0.0, say=print).look(["7"])["7"]
    assert (sight.phase, sight.evidence) == (Phase.UNSURE, f"accounting says {state} of job 7, squeue nothing")


def test_a_record_older_than_the_job_was_last_seen_alive_is_of_an_earlier_run(commands: Path) -> None:
    watch = SlurmWatch(poll_s=0.0, say=print, settle_s=0.0)
    write_command(commands / "squeue", "7|RUNNING|n0|None|x\n")
    watch.look(["7"])
    write_command(commands / "squeue", "")
    write_command(commands / "sacct", "7|PREEMPTED|0:0|40|n3|1764518400|None\n")
    assert watch.look(["7"])["7"].evidence == "accounting has only an earlier run of job 7"
    write_command(commands / "sacct", "7|TIMEOUT|0:0|40|n3|4102444800|None\n")
    assert watch.look(["7"])["7"].verdict == Verdict.TIMEOUT


def test_one_job_id_may_fail_with_its_node_wait_again_and_complete(commands: Path) -> None:
    watch = SlurmWatch(poll_s=0.0, say=print, settle_s=0.0)
    seen = []
    for state in ("RUNNING", "NODE_FAIL", "PENDING", "RUNNING", "COMPLETED"):
        write_command(commands / "squeue", f"7|{state}|n0|None|x\n")
        seen.append(watch.look(["7"])["7"].phase)
    assert seen == [Phase.RUNNING, Phase.RUNNING, Phase.QUEUED, Phase.RUNNING, Phase.ENDED]


@pytest.mark.parametrize("state", ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL"])
def test_an_end_that_slurm_may_take_back_counts_at_the_second_look(commands: Path, state: str) -> None:
    watch = SlurmWatch(poll_s=0.0, say=print, settle_s=0.0)
    watch.expect(["7"])
    write_command(commands / "squeue", f"7|{state}|n3|None|x\n")
    assert watch.look(["7"])["7"].phase == Phase.RUNNING
    sight = watch.look(["7"])["7"]
    assert (sight.phase, sight.hosts) == (Phase.ENDED, ("n3",))


def test_an_end_that_squeue_forgot_before_a_second_look_counts(commands: Path) -> None:
    watch = SlurmWatch(poll_s=0.0, say=print, settle_s=0.0)
    watch.expect(["7"])
    write_command(commands / "squeue", "7|NODE_FAIL|n3|None|x\n")
    watch.look(["7"])
    write_command(commands / "squeue", "")
    assert watch.look(["7"])["7"].verdict == Verdict.NODE_FAIL


@pytest.mark.parametrize(("state", "reason"), [("PENDING", "JobHeldUser"), ("SPECIAL_EXIT", "None")])
def test_a_held_job_waits_with_its_reason_and_not_for_ever(commands: Path, state: str, reason: str) -> None:
    write_command(commands / "squeue", f"7|{state}||{reason}|x\n")
    (commands / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {commands}/cancelled\n')
    assert SlurmWatch(poll_s=0.0, say=print).look(["7"])["7"].phase == Phase.QUEUED
    watch = SlurmWatch(poll_s=0.0, say=print, held_s=0.0)
    watch.expect(["7"])
    watch.look(["7"])
    sight = watch.look(["7"])["7"]
    assert sight.verdict == Verdict.CANCELLED
    assert f"was held ({reason})" in sight.evidence
    assert (commands / "cancelled").read_text() == "7\n"


def test_a_job_that_slurm_gave_up_starting_is_a_nodes_failure(commands: Path) -> None:
    write_command(commands / "squeue", "7|PENDING||launch failed requeued held|x\n")
    assert SlurmWatch(poll_s=0.0, say=print).look(["7"])["7"].verdict == Verdict.NODE_FAIL


@pytest.mark.parametrize("state", ["COMPLETING", "A_STATE_OF_NEXT_YEAR"])
def test_a_job_that_is_stuck_is_not_waited_for_without_end(
    commands: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    write_command(commands / "squeue", f"7|{state}|n0|None|x\n")
    watch = SlurmWatch(poll_s=0.0, say=print)
    assert watch.look(["7"])["7"].phase == Phase.RUNNING
    monkeypatch.setattr("windtunnel.launch.slurmwatch.STUCK_AFTER_S", 0.0)
    watch.look(["7"])
    assert watch.look(["7"])["7"].phase == Phase.UNSURE


def test_how_long_slurm_is_silent_is_known(commands: Path) -> None:
    watch = SlurmWatch(poll_s=0.0, say=lambda line: None)
    watch.look(["7"])
    assert watch.silent_s == 0
    write_command(commands / "squeue", "", code=1, stderr="Unable to contact slurm controller")
    watch.look(["7"])
    assert watch.silent_s > 0


def write_squeue(commands: Path, *, mine: str, others: str) -> None:
    """A squeue that shows this user's jobs by --me, and all jobs otherwise."""
    script = f'case "$*" in *--me*) echo "{mine}";; *) echo "{mine}"; echo "{others}";; esac'
    (commands / "squeue").write_text(f'#!/bin/sh\necho "$@" >> {commands}/calls\n{script}\n')


def write_command(path: Path, stdout: str, *, code: int = 0, stderr: str = "") -> None:
    path.write_text(f"#!/bin/sh\nprintf '%s' '{stdout}'\nprintf '%s' '{stderr}' >&2\nexit {code}\n")
    path.chmod(0o755)
