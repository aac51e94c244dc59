import pytest

from fake_backend import RUNNING, FakeBackend, make_courses, make_slurm_context
from fake_trials import make_trial
from windtunnel.launch.course import begin_course
from windtunnel.launch.drive import Driver
from windtunnel.ledger.log import LEDGER


def pause(tmp_path, count):
    context, backend = make_slurm_context(tmp_path), FakeBackend(tmp_path, poll_s=0.1)
    courses = make_courses(context, *[make_trial(f"t{index}") for index in range(count)])
    driver = Driver(context, backend, say=lambda line: None)
    driver.attach(courses)
    driver.step(courses)
    return driver.pause_s


def test_few_trials_are_looked_at_as_often_as_the_backend_says(tmp_path):
    assert pause(tmp_path, 2) == 0.1


def test_the_more_trials_are_watched_the_longer_is_the_pause(tmp_path):
    assert pause(tmp_path, 100) == pytest.approx(0.4)


def test_a_quiet_trial_is_read_again_the_later_the_more_are_watched(tmp_path, monkeypatch):
    course = begin_course(make_trial(), make_slurm_context(tmp_path), number=1, total=1)
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    quiet = []
    for seconds in (0, 29, 2):
        now[0] += seconds
        quiet.append(course.is_quiet(RUNNING, watched=100))
    assert quiet == [False, True, False]


def test_a_new_event_is_read_at_once_however_many_are_watched(tmp_path):
    course = begin_course(make_trial(), make_slurm_context(tmp_path), number=1, total=1)
    course.folder.path.mkdir(parents=True)
    course.is_quiet(RUNNING, watched=1000)
    assert course.is_quiet(RUNNING, watched=1000)
    (course.folder.path / LEDGER).write_text("{}\n")
    assert not course.is_quiet(RUNNING, watched=1000)
