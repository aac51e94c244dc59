"""What a driver does when it cannot claim or write trials: no claim stays, and one trial's fault is its own."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_backend import FakeBackend, make_courses, make_slurm_context
from fake_disk import at_most_bytes
from fake_trials import make_trial
from windtunnel.launch.claims import Claims, try_each
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.launch.submission import Submitter
from windtunnel.ledger.claim import CLAIM
from windtunnel.ledger.log import LEDGER
from windtunnel.records.trial import Verdict


def begin(store: Path, *names: str) -> tuple[Driver, list[Course], FakeBackend, list[str]]:
    context, backend, said = make_slurm_context(store), FakeBackend(store), list[str]()
    courses = make_courses(context, *(make_trial(name) for name in names))
    driver = Driver(context, backend, say=said.append)
    driver.attach(courses)
    return driver, courses, backend, said


def find_claims(store: Path) -> list[Path]:
    return list(store.rglob(f"{CLAIM}*"))


def block_folder(course: Course) -> None:
    """A file where the trial's folder should be: it stops any user, whatever the privileges."""
    course.folder.path.parent.mkdir(parents=True, exist_ok=True)
    course.folder.path.write_text("")


def block_config(course: Course) -> None:
    (course.folder.config / "x").mkdir(parents=True)


def block_ledger(course: Course) -> None:
    course.folder.path.mkdir(parents=True)
    (course.folder.path / LEDGER).symlink_to(LEDGER)


@pytest.mark.parametrize("block", [block_folder, block_ledger])
@pytest.mark.parametrize("already_submitted", [False, True], ids=["new", "submitted"])
def test_a_trial_that_cannot_be_read_is_left_and_the_others_go_on(
    tmp_path: Path, block: Callable[[Course], None], already_submitted: bool
) -> None:
    driver, courses, _, said = begin(tmp_path, "a", "b", "c")
    if already_submitted:
        driver.step(courses)
        shutil.rmtree(courses[1].folder.path)
    block(courses[1])
    if not already_submitted:
        driver.attach(courses)
    driver.step(courses)
    left = courses[1].entry
    assert left is not None
    assert left.verdict == Verdict.LOST
    assert str(courses[1].folder.path) in left.evidence
    assert [course.under_way for course in courses if course is not courses[1]] == [True, True]
    assert sum("cannot be read or written" in line for line in said) == 1


def test_a_trial_that_cannot_be_written_is_left_and_the_others_are_submitted(tmp_path: Path) -> None:
    driver, courses, backend, _ = begin(tmp_path, "a", "b", "c")
    block_config(courses[1])
    driver.step(courses)
    assert [trial_id for trial_id, _ in backend.submitted] == [courses[0].trial.id, courses[2].trial.id]
    entry = courses[1].entry
    assert entry is not None
    assert entry.verdict == Verdict.LOST
    assert "cannot be written" in entry.evidence
    assert find_claims(tmp_path) == []


@pytest.mark.parametrize("block", [block_folder, block_config, block_ledger])
def test_whatever_of_a_trial_cannot_be_written_the_reason_is_told(
    tmp_path: Path, block: Callable[[Course], None]
) -> None:
    context = make_slurm_context(tmp_path)
    courses = make_courses(context, make_trial("a"), make_trial("b"))
    block(courses[0])
    submitter = Submitter(context, FakeBackend(tmp_path), None, say=print)
    outcome = submitter.submit(courses, active=0)
    assert [course for course, _ in outcome.begun] == [courses[1]]
    [(left, words)] = outcome.left
    assert left is courses[0]
    assert str(left.folder.path) in words


def test_a_full_disk_ends_the_driver_and_leaves_no_claim(tmp_path: Path) -> None:
    driver, courses, backend, _ = begin(tmp_path, "a", "b", "c")
    with at_most_bytes(0), pytest.raises(OSError, match="File too large"):
        driver.step(courses)
    assert (find_claims(tmp_path), backend.submitted) == ([], [])
    driver.step(courses)
    assert len(backend.submitted) == 3


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_claims_already_taken_are_let_go_when_the_disk_fills(tmp_path: Path, code: int) -> None:
    courses = make_courses(make_slurm_context(tmp_path), make_trial("a"), make_trial("b"))

    def fail(course: Course) -> bool:
        raise OSError(code, os.strerror(code), str(course.folder.path))

    with pytest.raises(OSError, match=os.strerror(code)), Claims(say=print).hold(courses) as tried:  # noqa: PT012
        assert (tried.done, len(list(tmp_path.rglob(CLAIM)))) == (courses, 2)
        try_each(fail, courses)
    assert find_claims(tmp_path) == []


def test_trials_that_others_keep_claiming_are_told_once(tmp_path: Path) -> None:
    driver, courses, backend, said = begin(tmp_path, "a", "b", "c")
    for course in courses[:2]:
        course.folder.path.mkdir(parents=True)
        (course.folder.path / CLAIM).write_text("n7 123 boot:1\n")
    driver.step(courses)
    assert not [line for line in said if "claimed" in line]
    for _ in range(3):
        driver.step(courses)
    assert [line for line in said if line.startswith("2 trials are claimed by n7 pid 123")] == [
        line for line in said if "claimed" in line
    ]
    assert len([line for line in said if "claimed" in line]) == 1
    assert [trial_id for trial_id, _ in backend.submitted] == [courses[2].trial.id]
