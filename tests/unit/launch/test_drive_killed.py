"""A driver killed at every point at which it makes something durable, by a signal that runs no handler."""

import json
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fake_backend import QUEUED, ended, make_courses, make_slurm_context
from fake_trials import make_outcome, make_trial
from windtunnel.artifacts import write_artifact
from windtunnel.launch.backend import Submitted
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import UNSEEN, JobSight
from windtunnel.ledger.story import Submission
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import SweepSettings

TRIALS = [make_trial(name) for name in "ab"]
MAX_POINTS = 200


@dataclass
class DiskCluster:
    """A cluster that outlives its driver: each job is a file, named by its submission and its place in it.

    It kills the driver between the acceptance of a submission and the answer to it, when `kill` says so. The
    first job of each trial is preempted, the next one completes.
    """

    store: Path
    kill: "KillPoint"
    poll_s: float = 0.0
    survives: bool = True
    silent_s: float = 0.0

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        return waiting

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        name = os.urandom(4).hex()
        for index, trial in enumerate(trials):
            append_event(self._path(trial), "submitting", attempt=0, submission=name, index=index)
        self.kill.pass_by()
        for index, trial in enumerate(trials):
            (self.store / "queue" / f"{name}_{index}").write_text(json.dumps(trial.id))
        self.kill.pass_by()
        for index, trial in enumerate(trials):
            append_event(self._path(trial), "submitted", attempt=0, job_id=f"{name}_{index}")
        return Submitted({trial.id: f"{name}_{index}" for index, trial in enumerate(trials)})

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        job_id = f"{submission.name}_{submission.index}"
        return job_id if (self.store / "queue" / job_id).exists() else ""

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        with self.kill.spared():
            return {job_id: self._run(job_id) for job_id in job_ids}

    def explain(self, job_id: str) -> str:
        return ""

    def stop(self, job_ids: Collection[str]) -> None:
        pass

    def cancel(self, job_ids: Collection[str]) -> None:
        pass

    def close(self) -> None:
        pass

    def _run(self, job_id: str) -> JobSight:
        path = self.store / "queue" / job_id
        if not path.exists():
            return UNSEEN
        looked = path.with_suffix(".looked")
        if not looked.exists():
            looked.touch()
            return QUEUED
        trial_id = json.loads(path.read_text())
        if len(list_jobs(self.store, trial_id)) == 1:
            return ended(Verdict.PREEMPTED)
        folder = trial_folder(self.store, trial_id)
        if not folder.done.exists():
            write_artifact(folder.done, make_outcome(trial_id))
        return ended(None)

    def _path(self, trial: PlannedTrial) -> Path:
        return trial_folder(self.store, trial.id).path


class KillPoint:
    """Kills this process at the `number`th point passed; a driver passes one at each fsync."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.quiet = False

    def pass_by(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(self, descriptor: int) -> None:
        # What was written outlives a killed process without it.
        if not self.quiet:
            self.pass_by()

    def spared(self) -> "KillPoint":
        return self

    def __enter__(self) -> None:
        self.quiet = True

    def __exit__(self, *_: object) -> None:
        self.quiet = False


def test_a_driver_killed_at_any_point_submits_nothing_twice_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windtunnel.launch.drive.IN_FLIGHT_S", 0.0)
    survived = next(number for number in range(1, MAX_POINTS) if not kill_and_go_on(tmp_path / str(number), number))
    assert survived > 3 * 2 * 2  # at least both events of each of two submissions a trial


def kill_and_go_on(store: Path, number: int) -> bool:
    """Whether a driver reached the kill point `number`; a second driver then brings all to the same end."""
    (store / "queue").mkdir(parents=True)
    killed = drive_in_child(drive, store, number)
    if killed:
        assert not drive_in_child(drive, store, 0)
    for trial in TRIALS:
        folder = trial_folder(store, trial.id)
        assert folder.done.exists(), f"killed at {number}: {trial.name} is lost"
        jobs = list_jobs(store, trial.id)
        assert len(jobs) == 2, f"killed at {number}: {trial.name} was submitted {len(jobs)} times"
        assert [event.kind for event in read_events(folder.path)].count("submitted") == 2
    return killed


def list_jobs(store: Path, trial_id: str) -> list[str]:
    """The jobs that the cluster took of a trial."""
    jobs = [each for each in (store / "queue").iterdir() if not each.suffix]
    return [each.name for each in jobs if json.loads(each.read_text()) == trial_id]


def drive_in_child(drive: Callable[[Path, KillPoint], int], store: Path, number: int) -> bool:
    """Whether the driver, whose fsyncs are points too, was killed at point `number`; 0 kills none."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            kill = KillPoint(number)
            os.fsync = kill.fsync
            code = drive(store, kill)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def drive(store: Path, kill: KillPoint) -> int:
    context = make_slurm_context(store, sweep=SweepSettings(settle_s=0, poll_s=1e-6))
    courses: list[Course] = make_courses(context, *TRIALS)
    driver = Driver(context, DiskCluster(store, kill), say=lambda line: None)
    return drive_to_end(driver, courses)


def drive_to_end(driver: Driver, courses: list[Course]) -> int:
    """0 once every trial has completed, else 2."""
    driver.attach(courses)
    steps = 0
    while driver.step(courses):
        steps += 1
        assert steps < 1000
    completed = all(course.entry is not None and course.entry.verdict == Verdict.COMPLETED for course in courses)
    return 0 if completed else 2
