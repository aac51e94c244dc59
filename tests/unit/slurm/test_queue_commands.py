"""How squeue, sacct and scancel are called, with stand-ins for them first on PATH."""

import os
from pathlib import Path

import pytest

from windtunnel.errors import CommandError
from windtunnel.slurm.accounting import read_accounting, read_accounting_by_name
from windtunnel.slurm.queue import cancel_jobs, read_own_queue, read_queue, read_queue_by_name

LINE = "7_0|RUNNING|n0|None|x\\n9|RUNNING|n0|None|x\\n"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_a_few_jobs_are_asked_for_by_their_arrays(commands: Path) -> None:
    write_command(commands / "squeue", f"echo \"$@\" > {commands}/args; printf '{LINE}'")
    assert list(read_queue(["7_0", "7_1"])) == ["7_0"]
    assert "--jobs=7" in (commands / "args").read_text().split()


def test_thousands_of_jobs_need_no_argument_longer_than_the_kernel_takes(commands: Path) -> None:
    write_command(commands / "squeue", f"echo \"$@\" > {commands}/args; printf '{LINE}'")
    ids = [str(job_id) for job_id in range(10_000_000, 10_020_000)]
    assert list(read_queue([*ids, "9"])) == ["9"]
    assert "--jobs" not in (commands / "args").read_text()


def test_the_users_own_jobs_are_asked_for_alone(commands: Path) -> None:
    write_command(commands / "squeue", f"echo \"$@\" > {commands}/args; printf '{LINE}'")
    assert list(read_own_queue()) == ["7_0", "9"]
    assert {"--me", "--states=all", "--array"} <= set((commands / "args").read_text().split())


def test_a_controller_that_forgot_a_job_is_no_failure_and_one_that_is_away_is(commands: Path) -> None:
    write_command(commands / "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert read_queue(["7"]) == {}
    write_command(commands / "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(CommandError, match="Unable to contact"):
        read_queue(["7"])


def test_accounting_is_asked_in_batches_of_arrays(commands: Path) -> None:
    write_command(commands / "sacct", f"echo x >> {commands}/calls; echo '7_0|COMPLETED|0:0|1|n0|1|None'")
    jobs = read_accounting([f"{base}_{task}" for base in range(1, 1501) for task in range(2)])
    assert jobs is not None
    assert jobs["7_0"].ended_at == 1
    assert (commands / "calls").read_text() == "x\nx\n"


def test_no_accounting_is_told_from_accounting_that_does_not_answer(commands: Path) -> None:
    write_command(commands / "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert read_accounting(["7"]) is None
    write_command(commands / "sacct", "echo 'sacct: error: Problem talking to the database' >&2; exit 1")
    with pytest.raises(CommandError, match="Problem talking"):
        read_accounting(["7"])


def test_scancel_tells_what_it_was_refused_and_not_what_was_gone(commands: Path) -> None:
    gone = "scancel: error: Kill job error on job id 6: Invalid job id specified"
    refused = "scancel: error: Kill job error on job id 7: Access/permission denied"
    write_command(commands / "scancel", f"echo '{gone}' >&2; echo '{refused}' >&2; exit 1")
    assert cancel_jobs(["6", "7"]) == refused


@pytest.mark.parametrize("words", ["Job/step already completing or completed", "Invalid job id specified"])
def test_a_job_of_which_nothing_is_left_is_no_refusal(commands: Path, words: str) -> None:
    write_command(commands / "scancel", f"echo 'scancel: error: Kill job error on job id 6: {words}' >&2; exit 1")
    assert cancel_jobs(["6"]) == ""


def test_a_scancel_that_fails_without_a_word_is_no_success(commands: Path) -> None:
    write_command(commands / "scancel", "exit 3")
    assert cancel_jobs(["6"]) == "scancel ended with exit code 3"


def test_submissions_are_asked_for_by_name_with_one_command(commands: Path) -> None:
    write_command(commands / "squeue", f"echo \"$@\" >> {commands}/args; printf '{LINE}'")
    assert list(read_queue_by_name("x", "y")) == ["7_0", "9"]
    assert "--name=x,y" in (commands / "args").read_text().split()
    assert list(read_queue_by_name(*(f"y{number}" for number in range(9_000)))) == []
    assert len((commands / "args").read_text().splitlines()) == 2


def test_accounting_tells_jobs_by_the_name_of_their_submission(commands: Path) -> None:
    write_command(commands / "sacct", f"echo \"$@\" > {commands}/args; echo 'x|7_0|FAILED|1:0|1|n0|1|None'")
    found = read_accounting_by_name({"x", "y"})
    assert found is not None
    assert (list(found["x"]), found["y"]) == (["7_0"], {})
    assert "--name=x,y" in (commands / "args").read_text()
    write_command(commands / "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert read_accounting_by_name({"x"}) is None


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
