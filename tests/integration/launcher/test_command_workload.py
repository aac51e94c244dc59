import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command_trials import TELLS, make_command, run_program, write_command
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.run import run_attempt
from windtunnel.launch.progress import parse_step
from windtunnel.ledger.log import read_events
from windtunnel.records.trial import TrialOutcome, Verdict
from windtunnel.settings.cluster import ClusterSettings

STEPS = """
for step in range(1, 5):
    tell(step=step, loss=1 / step, samples=64, seconds=0.5)
"""
# Open MPI refuses root, and more ranks than cores, unless it is told.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
MPI_HERE: dict[str, Any] = {"start": "mpiexec", "ranks": 2, "environment": ALLOWED}
DONE = STEPS + "tell(done=True, validation_loss=0.25, accuracy=0.6)\n"


def test_a_program_that_says_done_is_completed_with_what_it_told(tmp_path: Path) -> None:
    end, folder = run_program(tmp_path, DONE)
    outcome = read_artifact(folder.done, TrialOutcome)
    assert (end.verdict, outcome.steps, outcome.samples_per_s, outcome.step_s_median) == ("COMPLETED", 4, 128.0, 0.5)
    (validation,) = outcome.evaluations
    assert (validation.loss, validation.metrics) == (0.25, {"accuracy": 0.6})
    steps = [parse_step(line) for line in folder.metrics.read_bytes().splitlines()]
    assert [(step.step, step.loss) for step in steps if step] == [(1, 1.0), (2, 0.5), (3, 1 / 3), (4, 0.25)]


def test_arguments_environment_and_the_settings_file_carry_the_parameters(tmp_path: Path) -> None:
    text = """
found = json.load(open(os.environ["WINDTUNNEL_SETTINGS"]))
print(sys.argv[1:], os.environ["RATE"], found["parameters"], found["attempt"], os.getcwd(), flush=True)
"""
    argv = ["--lr={lr}", "{training.steps}", "{{}}", "two words\nand 'quotes'"]
    _, folder = run_program(tmp_path, text, *argv, parameters={"lr": 1e-05}, environment={"RATE": "{lr}"})
    said = folder.rank_log(1, 0).read_text()
    assert "['--lr=1e-05', '3', '{}', \"two words\\nand 'quotes'\"] 1e-05 {'lr': 1e-05} 1 " in said
    assert said.strip().endswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "settings", "evidence"),
    [
        ("pass", {}, "it told no step in $WINDTUNNEL_METRICS"),
        (STEPS, {}, 'of step 4, does not say "done": true'),
        (STEPS, {"steps": 9}, "its last step in $WINDTUNNEL_METRICS is 4, expected 9"),
        (DONE + "sys.exit(3)", {}, "rank 0 ended with code 3"),
        (DONE + "os.kill(os.getpid(), 11)", {}, "rank 0 ended by SIGSEGV"),
    ],
)
def test_an_end_without_the_record_is_a_failure_that_says_why(tmp_path, text, settings, evidence) -> None:
    end, folder = run_program(tmp_path, text, **settings)
    assert end.verdict == Verdict.FAILED
    assert evidence in end.evidence
    assert not folder.done.exists()


def test_a_torn_line_is_counted_and_costs_nothing_else(tmp_path: Path) -> None:
    end, folder = run_program(tmp_path, 'file.write(\'{"step": 1, "lo\\n\')\n' + DONE)
    assert end.verdict == Verdict.COMPLETED
    assert "1 line of its metrics passed over (line 1: not JSON, or cut off)" in end.evidence
    assert read_artifact(folder.done, TrialOutcome).notes


def test_ranks_know_their_numbers_and_one_that_fails_ends_the_rest(tmp_path: Path) -> None:
    text = """
import time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.environ["MASTER_ADDR"], flush=True)
if os.environ["RANK"] == "2":
    sys.exit("the disk is gone")
time.sleep(600)
"""
    end, folder = run_program(tmp_path, text, ranks=3)
    assert (end.verdict, end.evidence) == (Verdict.FAILED, "rank 2 ended with code 1: the disk is gone")
    assert "rank 1 of 3 127.0.0.1" in folder.rank_log(1, 1).read_text()


@pytest.mark.parametrize("ending", ["MemoryError", "RuntimeError('CUDA out of memory')"])
def test_running_out_of_memory_is_told_from_other_failures(tmp_path: Path, ending: str) -> None:
    assert run_program(tmp_path, f"raise {ending}")[0].verdict == Verdict.OOM


def test_a_program_that_is_nowhere_fails_as_a_shell_would_say(tmp_path: Path) -> None:
    folder = write_command(tmp_path, make_command("no-such-program"), tmp_path)
    end = run_attempt(folder.path)
    assert (end.verdict, end.exit_code) == (Verdict.FAILED, 127)
    assert "cannot start no-such-program on" in end.evidence


def test_a_launcher_that_is_nowhere_is_not_the_programs_fault(tmp_path: Path) -> None:
    trial = make_command("true", start="mpiexec", mpiexec=["no-such-mpiexec"])
    end = run_attempt(write_command(tmp_path, trial, tmp_path).path)
    assert end.verdict == Verdict.CANCELLED
    assert "cannot start no-such-mpiexec" in end.evidence


def test_a_program_edited_after_planning_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("A = 1\n")
    folder = write_command(tmp_path / "store", make_command("python3", "program.py"), tmp_path)
    (tmp_path / "helper.py").write_text("A = 22\n")
    end = run_attempt(folder.path)
    assert (end.verdict, "files of program python3 differ" in end.evidence) == (Verdict.CANCELLED, True)


def test_output_without_end_fills_no_disk_and_keeps_both_its_ends(tmp_path: Path) -> None:
    text = "print('the beginning')\nfor _ in range(150): print('x' * 65536)\n" + DONE + "print('the end')"
    cluster = ClusterSettings(kind="local", partition="local", log_limit="1M")
    end, folder = run_program(tmp_path, text, cluster=cluster)
    log = folder.rank_log(1, 0)
    assert (end.verdict, log.stat().st_size <= 1 << 20) == (Verdict.COMPLETED, True)
    lines = log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("the beginning", "the end")
    assert any("bytes left out here" in line for line in lines)


def test_nothing_that_a_program_leaves_behind_outlives_it(tmp_path: Path) -> None:
    text = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\nprint(child.pid)\n"
    started = time.monotonic()
    _, folder = run_program(tmp_path, text + DONE)
    assert time.monotonic() - started < 60
    assert not Path(f"/proc/{folder.rank_log(1, 0).read_text().split()[0]}").exists()


def test_one_process_may_start_the_others_itself(tmp_path: Path) -> None:
    text = "hosts = open(os.environ['WINDTUNNEL_HOSTS']).read().split()\nassert 'RANK' not in os.environ\n"
    end, folder = run_program(tmp_path, text + "tell(step=len(hosts), done=True)", start="once", ranks=4)
    assert (end.verdict, read_artifact(folder.done, TrialOutcome).steps) == (Verdict.COMPLETED, 4)


def test_a_second_attempt_finds_the_checkpoints_of_the_first(tmp_path: Path) -> None:
    text = """
path = os.path.join(os.environ["WINDTUNNEL_CHECKPOINTS"], "step")
first = os.environ["WINDTUNNEL_ATTEMPT"] == "1"
if first:
    tell(step=1, loss=2.0)
    open(path, "w").write("1")
    os.kill(os.getpid(), 9)
tell(step=int(open(path).read()) + 1, loss=1.0, done=True)
"""
    first, folder = run_program(tmp_path, text)
    second = run_attempt(folder.path)
    assert (first.verdict, second.verdict, second.attempt) == (Verdict.LOST, Verdict.COMPLETED, 2)
    assert [json.loads(line)["attempt"] for line in folder.metrics.read_text().splitlines()] == [1, 2]


def test_an_end_that_cannot_be_written_is_said_and_is_no_traceback(tmp_path: Path) -> None:
    # A folder in the file's place fails as a full disk does, and for root too.
    text = "import os\nos.makedirs(os.environ['WINDTUNNEL_TRIAL_DIR'] + '/attempts/1/END.json')\n"
    (tmp_path / "program.py").write_text(text)
    folder = write_command(tmp_path / "store", make_command("python3", "program.py"), tmp_path)
    command = [sys.executable, "-m", "windtunnel.cli.main", "trial", str(folder.path)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 1
    assert "attempt 1 ended FAILED, unwritten: all ranks ended with code 0" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert [event.kind for event in read_events(folder.path)] == ["started", "ended"]


def test_a_program_that_the_kernel_kills_for_memory_is_out_of_memory(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory") / f"windtunnel-{tmp_path.name}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(64 << 20))
    except OSError:
        pytest.skip("no control group of memory can be made here")
    text = f"open('{group}/cgroup.procs', 'w').write('0')\nhoard = [bytearray(b'x' * (1 << 20)) for _ in range(500)]"
    try:
        end, _ = run_program(tmp_path, text)
    finally:
        group.rmdir()
    assert (end.verdict, end.evidence) == (Verdict.OOM, "rank 0 ended by SIGKILL: killed for memory")


def test_a_full_disk_ends_in_a_verdict_and_no_traceback(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(store)], capture_output=True
    ).returncode:
        pytest.skip("no file system of its own can be mounted here")
    try:
        text = TELLS + "    open(os.environ['WINDTUNNEL_TRIAL_DIR'] + '/big', 'wb').write(b'x' * (1 << 20))\n"
        (tmp_path / "program.py").write_text(text)
        folder = write_command(store, make_command("python3", "program.py"), tmp_path)
        command = [sys.executable, "-m", "windtunnel.cli.main", "trial", str(folder.path)]
        finished = subprocess.run(command, capture_output=True, text=True)
        assert (finished.returncode, "Traceback" in finished.stderr) == (1, False)
        assert "FAILED" in finished.stderr or folder.end(1).is_file()
    finally:
        subprocess.run(["umount", str(store)], check=True)


def test_the_page_about_programs_works_as_it_is_written(tmp_path: Path, project_dir: Path) -> None:
    (tmp_path / "descend.py").write_text(read_block(project_dir, "python"))
    trial = make_command("python3", "descend.py", "--lr={lr}", parameters={"lr": 0.1})
    folder = write_command(tmp_path / "store", trial, tmp_path)
    assert run_attempt(folder.path).verdict == Verdict.COMPLETED
    outcome = read_artifact(folder.done, TrialOutcome)
    assert (outcome.steps, len(outcome.evaluations), outcome.samples_per_s is not None) == (50, 1, True)


@pytest.mark.mpi
def test_the_pages_mpi_binary_runs_under_mpis_own_launcher(tmp_path: Path, project_dir: Path) -> None:
    compiler = shutil.which("mpicc")
    if compiler is None:
        pytest.skip("no mpicc on PATH")
    (tmp_path / "allreduce.c").write_text(read_block(project_dir, "c"))
    subprocess.run([compiler, "-o", "allreduce", "allreduce.c"], cwd=tmp_path, check=True)
    mpiexec = [str(Path(compiler).with_name("mpiexec")), "-n", "{ranks}"]
    trial = make_command("./allreduce", "{floats}", **MPI_HERE, mpiexec=mpiexec, parameters={"floats": 1024})
    folder = write_command(tmp_path / "store", trial, tmp_path)
    end = run_attempt(folder.path)
    assert end.verdict == Verdict.COMPLETED, folder.rank_log(1, 0).read_text()
    outcome = read_artifact(folder.done, TrialOutcome)
    assert (outcome.steps, len(outcome.rank_hosts)) == (20, 2)
    # What its last line says of its own: two ranks found each other.
    assert '"ranks": 2' in (folder.attempt(1) / "metrics.jsonl").read_text()


def read_block(project_dir: Path, language: str) -> str:
    """The page's first program in a language."""
    text = (project_dir / "docs/command.md").read_text()
    return text.split(f"```{language}\n", 1)[1].split("```", 1)[0]
