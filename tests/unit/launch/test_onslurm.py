import os
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission

from fake_trials import make_trial
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course, begin_course
from windtunnel.launch.drive import Driver
from windtunnel.launch.onslurm import SlurmBackend
from windtunnel.ledger.log import append_event, read_events
from windtunnel.records.plan import Identity
from windtunnel.records.trial import Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings

_FAILED = "echo 'sbatch: error: Batch job submission failed: {}' >&2; exit 1"
TIMED_OUT = _FAILED.format("Socket timed out on send/recv operation")
UNREACHABLE = _FAILED.format("Unable to contact slurm controller (connect failure)")


def test_a_job_whose_driver_died_before_it_wrote_the_id_is_found_by_its_submissions_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "squeue", r"printf '7_0|RUNNING|n0|None|x\n7_1|PENDING||Resources|x\n'")
    context = make_context(tmp_path)
    context.jobs_dir.mkdir()
    trial = make_trial("b")
    said: list[str] = []
    course = begin_course(trial, context, number=1, total=1)
    course.folder.path.mkdir(parents=True)
    append_event(course.folder.path, "submitting", attempt=0, submission="windtunnel-x-1", index=1)
    Driver(context, SlurmBackend(context, say=said.append), say=said.append).attach([course])
    assert (course.job_id, course.under_way) == ("7_1", True)
    assert [event.kind for event in read_events(course.folder.path)] == ["submitting", "submitted"]
    assert said == ["trial 1 of 1: b: already under way (7_1): watching it"]


def test_a_submission_whose_answer_was_lost_is_found_and_given_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "sbatch", f"touch {tmp_path}/taken; {TIMED_OUT}")
    write_command(commands / "squeue", f"test -e {tmp_path}/taken && echo '7|PENDING||Resources|x'")
    driver, course, said = begin(tmp_path)
    driver.step([course])
    assert (course.job_id, course.under_way, course.entry) == ("7", True, None)
    assert kinds(course) == ["submitting", "submitted"]
    assert said == ["trial 1 of 1: b: submitted as 7"]
    call = DelayedSubmission.load(tmp_path / "jobs" / "7_submitted.pkl")
    assert call.function.__name__ == "exec_command"
    assert call.args == (make_context(tmp_path).command_of(course.trial),)


def test_a_trial_that_slurm_did_not_answer_is_submitted_again_and_not_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "sbatch", UNREACHABLE)
    driver, course, said = begin(tmp_path)
    assert driver.step([course])
    assert (course.entry, course.under_way) == (None, False)
    write_command(commands / "sbatch", f"echo x >> {tmp_path}/calls; echo Submitted batch job 8")
    write_command(commands / "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    driver.step([course])
    assert not (tmp_path / "calls").exists()  # the first may have been taken: nobody can tell yet
    write_command(commands / "squeue", "")
    driver.step([course])
    assert not (tmp_path / "calls").exists()  # it may still be on its way
    course.settled_at = 0.0
    for _ in range(2):
        driver.step([course])
    assert (course.job_id, course.submissions) == ("8", 1)
    assert (tmp_path / "calls").read_text() == "x\n"
    unreachable = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    assert said == [
        "trials that wait to be submitted: 1; trying again: sbatch got no answer from Slurm: " + unreachable,
        "trial 1 of 1: b: submitted as 8",
    ]


def test_a_submission_that_turns_up_later_is_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "sbatch", f"echo x >> {tmp_path}/calls; {TIMED_OUT}")
    driver, course, _ = begin(tmp_path)
    second = begin_course(make_trial("c"), make_context(tmp_path), number=2, total=2)
    driver.step([course, second])
    assert not course.under_way
    write_command(
        commands / "squeue", f"echo x >> {tmp_path}/asked; printf '7_0|RUNNING|n0|None|x\\n7_1|PENDING||x|x\\n'"
    )
    driver.step([course, second])
    assert (course.job_id, second.job_id) == ("7_0", "7_1")
    assert (tmp_path / "asked").read_text() == "x\nx\n"  # by name for both, and then where they stand
    assert (tmp_path / "calls").read_text() == "x\n"


def test_a_slurm_that_never_answers_leaves_the_trial_for_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windtunnel.launch.submission.MAX_SILENCES", 2)
    monkeypatch.setattr("windtunnel.launch.submission.IN_FLIGHT_S", 0.0)
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "sbatch", UNREACHABLE)
    driver, course, _ = begin(tmp_path)
    other = begin_course(make_trial("c", ranks=2), make_context(tmp_path), number=2, total=2)
    steps = [driver.step([course, other]) for _ in range(4)]
    assert steps == [True, True, True, False]
    assert other.entry is not None
    assert (other.entry.verdict, kinds(other)) == (Verdict.LOST, [])
    assert course.entry is not None
    assert course.entry.verdict == Verdict.LOST
    assert course.entry.evidence.startswith("not submitted in 3 tries: sbatch got no answer")
    assert set(kinds(course)) == {"submitting"}


@pytest.mark.parametrize(
    "cause", ["invalid partition specified: nope", "Invalid account or account/partition", "QOS"]
)
def test_what_slurm_refuses_is_cancelled_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    commands = put_commands(tmp_path, monkeypatch)
    write_command(commands / "sbatch", f"echo 'sbatch: error: {cause}' >&2; exit 1")
    driver, course, _ = begin(tmp_path)
    driver.step([course])
    assert course.entry is not None
    assert course.entry.verdict == Verdict.CANCELLED
    assert course.entry.evidence == f"sbatch refused it: sbatch: error: {cause}"


def begin(store: Path) -> tuple[Driver, Course, list[str]]:
    context = make_context(store)
    context.jobs_dir.mkdir()
    said: list[str] = []
    course = begin_course(make_trial("b"), context, number=1, total=1)
    return Driver(context, SlurmBackend(context, say=said.append), say=said.append), course, said


def kinds(course: Course) -> list[str]:
    return [event.kind for event in read_events(course.folder.path)]


def put_commands(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins for Slurm's commands, first on PATH; Slurm knows no job at first."""
    folder = store / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("squeue", "sacct", "srun", "scontrol", "sacctmgr"):
        write_command(folder / name, "")
    return folder


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n:\n" if "exit" not in script else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make_context(store: Path) -> SweepContext:
    return SweepContext(
        study="made_up",
        cluster=ClusterSettings(kind="slurm", partition="main"),
        sweep=SweepSettings(poll_s=1e-6),
        identity=Identity("d", "s", "2.13.0"),
        features=store / "MANIFEST.json",
        topology=None,
        store=store,
        import_root="",
        jobs_dir=store / "jobs",
    )
