"""What the next command, or another study's driver, makes of trials that ended, or moved, while it did not look."""

from pathlib import Path

import pytest

from fake_backend import (
    QUEUED,
    RUNNING,
    FakeBackend,
    end_attempt,
    ended,
    make_courses,
    make_slurm_context,
    start_attempt,
)
from fake_trials import make_outcome, make_trial
from windtunnel.artifacts import write_artifact
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import UNSEEN, JobSight
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import RetrySettings, SweepSettings

AGAIN = [
    (Verdict.CANCELLED, SweepSettings(settle_s=0)),
    (Verdict.PREEMPTED, SweepSettings(settle_s=0, retries=RetrySettings(preempted=0))),
    (Verdict.FAILED, SweepSettings(settle_s=0, strict=True)),
    (Verdict.OOM, SweepSettings(settle_s=0, retries=RetrySettings(out_of_memory=1))),
]


@pytest.mark.parametrize(("verdict", "sweep"), AGAIN)
def test_a_trial_that_ended_while_no_driver_lived_is_run_by_the_next_command(
    tmp_path: Path, verdict: Verdict, sweep: SweepSettings
) -> None:
    first, course, backend = begin(tmp_path, sweep)
    first.step([course])
    end_attempt(course.folder, start_attempt(course.folder, "1"), verdict, job_id="1")
    backend.sights["1"] = ended(verdict)
    second, again, _ = begin(tmp_path, sweep, backend)
    second.step([again])
    assert (again.entry, again.job_id, len(backend.submitted)) == (None, "2", 2)


def test_a_wish_written_down_while_no_driver_lived_does_not_keep_the_next_command_from_the_trial(
    tmp_path: Path,
) -> None:
    folder = make_courses(make_slurm_context(tmp_path), make_trial("a"))[0].folder
    folder.path.mkdir(parents=True)
    append_event(folder.path, "cancelling", attempt=0, user="rosa")
    driver, course, backend = begin(tmp_path)
    driver.step([course])
    assert (course.entry, len(backend.submitted)) == (None, 1)


@pytest.mark.parametrize(("verdict", "sweep"), AGAIN)
def test_a_trial_that_another_driver_gave_up_meanwhile_is_run_where_it_waits(
    tmp_path: Path, verdict: Verdict, sweep: SweepSettings
) -> None:
    driver, course, backend = begin(tmp_path, sweep)
    append_event(course.folder.path, "submitted", attempt=0, job_id="9")
    attempt = start_attempt(course.folder, "9")
    end_attempt(course.folder, attempt, verdict, job_id="9")
    append_event(course.folder.path, "verdict", attempt=attempt, verdict=verdict, evidence="told", job_id="9")
    backend.sights["9"] = ended(verdict)
    for _ in range(2):
        driver.step([course])
    assert (course.entry, course.job_id) == (None, "1")


def test_a_trial_that_another_driver_saw_fail_meanwhile_has_failed(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path)
    append_event(course.folder.path, "submitted", attempt=0, job_id="9")
    end_attempt(course.folder, start_attempt(course.folder, "9"), Verdict.FAILED, job_id="9")
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, backend.submitted) == (Verdict.FAILED, [])


@pytest.mark.parametrize("sight", [UNSEEN, QUEUED, RUNNING])
def test_a_job_of_another_driver_is_watched_also_while_nobody_can_say_where_it_is(
    tmp_path: Path, sight: JobSight
) -> None:
    driver, course, backend = begin(tmp_path)
    append_event(course.folder.path, "submitted", attempt=0, job_id="9")
    backend.sights["9"] = sight
    for _ in range(3):
        driver.step([course])
    assert (course.under_way, course.job_id, backend.submitted) == (True, "9", [])


def test_a_slurm_that_does_not_answer_at_the_start_is_asked_again(tmp_path: Path, settled: None) -> None:
    backend = FakeBackend(tmp_path, deaf="Unable to contact slurm controller")
    begin_submission(tmp_path)
    driver, course, _ = begin(tmp_path, backend=backend)
    driver.step([course])
    assert (course.entry, backend.submitted) == (None, [])
    backend.deaf = ""
    driver.step([course])
    assert (course.entry, course.job_id) == (None, "1")


def test_a_slurm_that_does_not_answer_about_another_drivers_submission_is_asked_again(
    tmp_path: Path, settled: None
) -> None:
    backend = FakeBackend(tmp_path)
    driver, course, _ = begin(tmp_path, backend=backend)
    begin_submission(tmp_path)
    backend.deaf = "Unable to contact slurm controller"
    for _ in range(3):
        driver.step([course])
    assert (course.entry, backend.submitted) == (None, [])
    backend.deaf = ""
    driver.step([course])
    assert (course.entry, course.job_id) == (None, "1")


def test_a_slurm_that_never_answers_leaves_the_trial_to_the_next_command(tmp_path: Path, settled: None) -> None:
    begin_submission(tmp_path)
    driver, course, _ = begin(tmp_path, backend=FakeBackend(tmp_path, deaf="no answer"))
    for _ in range(30):
        driver.step([course])
    assert course.entry is not None
    assert course.entry.evidence == "not submitted in 21 tries: no answer"
    assert [event.kind for event in read_events(course.folder.path)] == ["submitting"]


def test_a_job_that_could_not_be_taken_from_its_failing_nodes_is_tried_again_at_the_next_look(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, SweepSettings(settle_s=0, retries=RetrySettings(node_fail=0)))
    driver.step([course])
    start_attempt(course.folder, "1")
    backend.deaf = "scancel ran for more than 60 s"
    driver.step([course])
    assert course.entry is None
    backend.deaf = ""
    driver.step([course])
    assert backend.cancelled == ["1"]
    assert course.entry is not None


def test_the_same_command_after_a_driver_was_told_to_stop_runs_its_trials_to_their_end(tmp_path: Path) -> None:
    first, course, backend = begin(tmp_path, backend=FakeBackend(tmp_path, survives=False))
    first.step([course])
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.CANCELLED, job_id="1")
    backend.sights["1"] = ended(None)
    first.stop([course], timeout_s=0)
    assert course.entry is not None
    assert course.entry.verdict == Verdict.CANCELLED
    second, again, _ = begin(tmp_path, backend=backend)
    second.step([again])
    start_attempt(again.folder, "2")
    write_artifact(again.folder.done, make_outcome(again.trial.id, attempt=2))
    backend.sights["2"] = ended(None)
    second.step([again])
    assert again.entry is not None
    assert (again.entry.verdict, again.entry.attempts) == (Verdict.COMPLETED, 2)


def test_a_wish_during_a_submission_cancels_the_job_once_its_id_is_known(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, backend=FakeBackend(tmp_path, meanwhile=wish))
    driver.step([course])
    assert (course.job_id, backend.cancelled) == ("1", ["1"])
    backend.sights["1"] = ended(Verdict.CANCELLED)
    driver.step([course])
    assert course.entry is not None
    assert course.entry.evidence.startswith("cancelled by rosa")


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_a_wish_that_crosses_a_submission_wins_and_the_job_ends_as_soon_as_its_id_is_known(
    tmp_path: Path, moment: str
) -> None:
    backend = FakeBackend(tmp_path)
    setattr(backend, moment, wish)
    driver, course, _ = begin(tmp_path, backend=backend)
    driver.step([course])
    assert backend.cancelled == ["1"]
    backend.sights["1"] = ended(Verdict.PREEMPTED)
    driver.step([course])
    assert course.entry is not None
    assert course.entry.evidence.startswith("cancelled by rosa")


def test_a_wish_into_a_submission_whose_driver_died_holds_for_the_driver_that_finds_its_job(tmp_path: Path) -> None:
    begin_submission(tmp_path)
    wish(make_courses(make_slurm_context(tmp_path), make_trial("a"))[0].folder.path)
    _, course, backend = begin(tmp_path, backend=FakeBackend(tmp_path, recovered="9"))
    assert (course.job_id, backend.cancelled) == ("9", ["9"])


def test_a_wish_does_not_end_the_job_of_a_pack_that_another_trial_wants(tmp_path: Path) -> None:
    mate = make_courses(make_slurm_context(tmp_path), make_trial("b"))[0].folder.path
    mate.mkdir(parents=True)
    append_event(mate, "submitting", attempt=0, submission="x-9", index=0, pack=["a", "b"])
    begin_submission(tmp_path, pack=[make_trial("a").id, make_trial("b").id])
    wish(make_courses(make_slurm_context(tmp_path), make_trial("a"))[0].folder.path)
    _, course, backend = begin(tmp_path, backend=FakeBackend(tmp_path, recovered="9"))
    assert (course.job_id, backend.cancelled) == ("9", [])


def test_what_the_place_refuses_to_cancel_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    backend = FakeBackend(tmp_path, meanwhile=wish, deaf="scancel: error: Access/permission denied")
    driver, course, _ = begin(tmp_path, backend=backend, said=said)
    driver.step([course])
    assert "jobs 1 go on, though somebody wished to cancel them: scancel: error: Access/permission denied" in said


def test_a_trial_that_there_is_no_room_for_is_neither_claimed_nor_written(tmp_path: Path) -> None:
    driver, course, _ = begin(tmp_path, backend=FakeBackend(tmp_path, shut={make_trial("a").id}))
    driver.step([course])
    assert list(course.folder.path.iterdir()) == []
    assert course.entry is None


def test_a_trial_whose_job_ended_before_its_turn_came_pays_nothing_for_it(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, SweepSettings(settle_s=0, retries=RetrySettings(preempted=0)))
    for job_id in ("1", "2", "3"):
        driver.step([course])
        append_event(course.folder.path, "waiting", attempt=0, job_id=job_id)
        backend.sights[job_id] = ended(Verdict.TIMEOUT)
        driver.step([course])
    driver.step([course])
    assert (course.entry, course.job_id, len(backend.submitted)) == (None, "4", 4)


@pytest.mark.parametrize("fate", ["full", "lost"])
def test_a_wish_during_a_submission_that_came_to_nothing_ends_the_trial(
    tmp_path: Path, settled: None, fate: str
) -> None:
    backend = FakeBackend(tmp_path, meanwhile=wish)
    driver, course, _ = begin(tmp_path, backend=backend)
    setattr(backend, fate, True)
    driver.step([course])
    setattr(backend, fate, False)
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, backend.submitted) == (Verdict.CANCELLED, [])


def wish(path: Path) -> None:
    append_event(path, "cancelling", attempt=0, user="rosa")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's submission is still on its way."""
    for module in ("drive", "submission"):
        monkeypatch.setattr(f"windtunnel.launch.{module}.IN_FLIGHT_S", 0.0)


def begin_submission(store: Path, **details: object) -> None:
    """Another driver's submission whose answer nobody knows."""
    folder = make_courses(make_slurm_context(store), make_trial("a"))[0].folder
    folder.path.mkdir(parents=True, exist_ok=True)
    append_event(folder.path, "submitting", attempt=0, submission="x-9", index=0, **details)


def begin(
    store: Path,
    sweep: SweepSettings | None = None,
    backend: FakeBackend | None = None,
    said: list[str] | None = None,
) -> tuple[Driver, Course, FakeBackend]:
    """A driver of one trial, attached."""
    sweep = (sweep or SweepSettings(settle_s=0)).model_copy(update={"poll_s": 1e-6})
    context = make_slurm_context(store, sweep=sweep)
    backend = backend or FakeBackend(store)
    courses = make_courses(context, make_trial("a"))
    courses[0].folder.path.mkdir(parents=True, exist_ok=True)
    driver = Driver(context, backend, say=(said if said is not None else []).append)
    driver.attach(courses)
    return driver, courses[0], backend
