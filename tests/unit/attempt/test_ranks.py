import signal
import sys
import time
from pathlib import Path

from windtunnel.attempt.plan import LaunchPlan, Process
from windtunnel.attempt.ranks import StopRequest, run_ranks

DEAF = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"


def plan_of(folder: Path, *argv: str, time_limit_s: float = 60.0) -> LaunchPlan:
    return LaunchPlan((Process(argv, {}, folder / "rank-0.log"),), ("here",), None, time_limit_s)


def run_until_said(plan: LaunchPlan, word: str, **options: float) -> tuple[list[int], str]:
    """Run, and ask to stop once the process has said `word`."""
    stop, log = StopRequest(), plan.processes[0].log

    def beat() -> None:
        if stop.signum is None and log.exists() and word in log.read_text():
            stop.receive(signal.SIGTERM, None)

    exits, reason = run_ranks(plan, stop=stop, beat=beat, **options)
    return [exit_.code for exit_ in exits], reason


def test_a_program_deaf_to_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    found = run_until_said(plan_of(tmp_path, "sh", "-c", DEAF), "deaf", stop_grace_s=0.3)
    assert found == ([-9], "signal")


def test_a_program_may_use_its_grace_to_end_well(tmp_path: Path) -> None:
    text = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    plan = plan_of(tmp_path, "sh", "-c", text)
    assert run_until_said(plan, "up") == ([0], "signal")
    assert plan.processes[0].log.read_text().endswith("saved\n")


def test_a_program_past_its_time_is_stopped_for_that(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "sleep", "600", time_limit_s=0.2)
    exits, reason = run_ranks(plan, stop=StopRequest(), beat=lambda: None)
    assert ([exit_.code for exit_ in exits], reason) == ([-15], "time")


def test_a_file_that_is_no_program_fails_as_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    plan = plan_of(tmp_path, str(tmp_path / "text"))
    exits, _ = run_ranks(plan, stop=StopRequest(), beat=lambda: None)
    assert [exit_.code for exit_ in exits] == [126]
    assert "Permission denied" in plan.processes[0].log.read_text()


def test_a_grandchild_that_holds_the_pipe_delays_nobody(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); print('gone')"
    plan = plan_of(tmp_path, sys.executable, "-c", code)
    started = time.monotonic()
    run_ranks(plan, stop=StopRequest(), beat=lambda: None)
    assert time.monotonic() - started < 30
    assert plan.processes[0].log.read_text() == "gone\n"


def test_a_rank_that_the_launcher_calls_failed_ends_the_others_after_its_last_words(tmp_path: Path) -> None:
    text = "echo 'srun: error: n1: task 1: Exited with exit code 1'; sleep 0.5; echo '1: last words'; exec sleep 600"
    process = Process(("sh", "-c", text), {}, tmp_path / "srun.log", labelled_ranks=2)
    plan = LaunchPlan((process,), ("n0", "n1"), None, None, launcher="srun")
    exits, reason = run_ranks(plan, stop=StopRequest(), beat=lambda: None)
    assert ([exit_.code for exit_ in exits], reason) == ([-15], "failure")
    assert (tmp_path / "rank-1.log").read_text() == "last words\n"
