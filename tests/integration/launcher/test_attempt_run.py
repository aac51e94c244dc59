import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import RANK, SUPERVISOR, make_identity, make_trial, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.breaker import STUCK_CODE
from windtunnel.attempt.run import run_attempt
from windtunnel.errors import BusyError, ClusterError
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.cluster import ClusterSettings


def test_an_attempt_that_reaches_its_last_step_is_completed(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(ranks=2))
    end = run_attempt(folder.path, rank_command=RANK)
    assert (end.verdict, end.attempt, end.exit_code) == (Verdict.COMPLETED, 1, 0)
    assert read_artifact(folder.end(1), AttemptEnd) == end
    assert [event.kind for event in read_events(folder.path)] == ["started", "ended"]
    assert "rank 1 pid" in folder.rank_log(1, 1).read_text()


def test_a_done_trial_is_not_run_again(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial())
    run_attempt(folder.path, rank_command=RANK)
    again = run_attempt(folder.path, rank_command=RANK)
    assert again.verdict == Verdict.COMPLETED
    assert [entry.name for entry in folder.attempts.iterdir()] == ["1"]


def test_a_failed_rank_gives_the_exceptions_last_line(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="fail"))
    end = run_attempt(folder.path, rank_command=RANK)
    assert (end.verdict, end.evidence) == (Verdict.FAILED, "rank 0: ValueError: no such loss")


def test_one_failed_rank_ends_the_others(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="last rank fails", ranks=2))
    started = time.monotonic()
    end = run_attempt(folder.path, rank_command=RANK)
    assert time.monotonic() - started < 30
    assert end.verdict == Verdict.FAILED
    assert "rank 1" in end.evidence
    assert "the disk is gone" in end.evidence
    assert not _alive(_rank_pid(folder.rank_log(1, 0)))


def test_ranks_that_end_well_without_done_are_a_failure(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="say nothing"))
    end = run_attempt(folder.path, rank_command=RANK)
    assert (end.verdict, end.evidence) == (Verdict.FAILED, "all ranks ended with code 0, but DONE.json is missing")


def test_a_rank_killed_from_outside_is_lost_and_the_next_attempt_begins_in_the_same_job(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="killed at first"))
    end = run_attempt(folder.path, rank_command=RANK)
    assert (end.verdict, end.attempt) == (Verdict.COMPLETED, 2)
    first = read_artifact(folder.end(1), AttemptEnd)
    assert first.verdict == Verdict.LOST
    assert "rank 0 ended by SIGKILL, not by us" in first.evidence
    assert [event.kind for event in read_events(folder.path)] == ["started", "ended", "started", "ended"]


def test_a_budget_of_the_sweep_holds_inside_a_job_too(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="killed always"), lost_retries=1)
    assert [run_attempt(folder.path, rank_command=RANK).attempt for _ in range(2)] == [2, 3]


def test_a_trial_that_dies_again_and_again_is_stopped_and_stays_so_in_later_jobs(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="killed always"), lost_retries=100)
    for attempt in (5, 6):
        end = run_attempt(folder.path, rank_command=RANK)
        assert (end.verdict, end.exit_code, end.attempt) == (Verdict.FAILED, STUCK_CODE, attempt)
        assert end.evidence.startswith(
            "3 restarts from step 0, without any checkpoint got no further: attempt 2: LOST"
        )
    append_event(folder.path, "withdrawn", attempt=0)
    assert run_attempt(folder.path, rank_command=RANK).attempt == 11


def test_changed_source_is_refused_with_its_reason(tmp_path: Path) -> None:
    identity = replace(make_identity(), source_sha256="0" * 64)
    folder = write_trial(tmp_path, make_trial(), identity=identity)
    end = run_attempt(folder.path, rank_command=RANK)
    assert end.verdict == Verdict.CANCELLED
    assert "source of windtunnel differs" in end.evidence
    assert not folder.rank_log(1, 0).exists()


def test_a_second_live_supervisor_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial())
    lease = take_lease(folder.lease, f"trial {folder.path.name}")
    with pytest.raises(BusyError, match=rf"driven by pid {os.getpid()} on host"):
        run_attempt(folder.path, rank_command=RANK)
    lease.release()
    assert not folder.attempts.exists()


def test_a_slurm_trial_outside_a_job_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    cluster = ClusterSettings(kind="slurm", partition="cpu")
    folder = write_trial(tmp_path, make_trial(cluster=cluster))
    with pytest.raises(ClusterError, match="start it inside a job"):
        run_attempt(folder.path, rank_command=RANK)


def test_sigterm_reaches_the_ranks_and_the_end_is_recorded(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="hang"))
    supervisor = subprocess.Popen([*SUPERVISOR, str(folder.path)])
    pid = _wait_for_rank(folder.rank_log(1, 0))
    told_at = time.time()
    supervisor.terminate()
    assert supervisor.wait(120) == 1
    assert not _alive(pid)
    assert read_artifact(folder.end(1), AttemptEnd).verdict == Verdict.CANCELLED
    assert told_at <= read_events(folder.path)[-1].details["signalled_at"] <= time.time()


def test_no_rank_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="hang", ranks=2))
    supervisor = subprocess.Popen([*SUPERVISOR, str(folder.path)])
    pids = [_wait_for_rank(folder.rank_log(1, rank)) for rank in (0, 1)]
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in pids)


def test_the_supervisor_imports_neither_torch_nor_mpi() -> None:
    code = "import sys, windtunnel.attempt.run, windtunnel.launch.run; print({'torch', 'mpi4py'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def _wait_for_rank(log: Path) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if log.exists() and "pid" in log.read_text():
            return _rank_pid(log)
        time.sleep(0.05)
    raise AssertionError(f"no rank wrote {log}")


def _rank_pid(log: Path) -> int:
    return int(log.read_text().split("pid ")[1].split()[0])


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_fault_of_our_own_is_told_in_the_trial_and_blames_no_node(tmp_path: Path) -> None:
    trial = make_trial()
    del trial.settings["cluster"]["log_limit"]
    end = run_attempt(write_trial(tmp_path, trial).path, rank_command=RANK)
    assert (end.verdict, end.evidence) == (Verdict.CANCELLED, "windtunnel itself failed: KeyError: 'log_limit'")
