"""A driver that keeps a job behind the present one, killed at every point at which it makes something durable."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_drive_killed import KillPoint, drive_in_child, drive_to_end

from fake_backend import QUEUED, RUNNING, ended, make_courses, make_slurm_context, start_attempt
from fake_trials import make_outcome, make_trial
from windtunnel.artifacts import write_artifact
from windtunnel.launch.backend import Submitted
from windtunnel.launch.drive import Driver
from windtunnel.launch.successors import Successors
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import UNSEEN, JobSight
from windtunnel.ledger.story import Submission, Succession
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import SweepSettings

TRIAL = make_trial("a")
MAX_POINTS = 100


@dataclass
class SingletonCluster:
    """A cluster that outlives its driver: each job is a file, and starts when those before it of its name have ended.

    A trial's first job is preempted as soon as it has run; the next one that runs completes. Every job tells of its
    start and moves on when it is looked at.
    """

    store: Path
    kill: KillPoint
    poll_s: float = 0.0
    survives: bool = True
    silent_s: float = 0.0

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        return waiting

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        ids = {}
        for trial in trials:
            name, folder = os.urandom(4).hex(), trial_folder(self.store, trial.id).path
            append_event(folder, "submitting", attempt=0, submission=name, index=0, alone=True)
            ids[trial.id] = self.queue(trial, name)
            append_event(folder, "submitted", attempt=0, job_id=ids[trial.id], submission=name)
        return Submitted(ids)

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        return next(iter(self._list(submission.name)), "")

    def queue(self, trial: PlannedTrial, name: str, *, exclude: Sequence[str] = ()) -> str:
        self.kill.pass_by()
        number = len(self._list("")) + 101
        job = {"id": str(number), "name": name, "trial": trial.id, "looks": 0}
        self._path(str(number)).write_text(json.dumps(job))
        self.kill.pass_by()
        return str(number)

    def find(self, trial: PlannedTrial, succession: Succession, known: Collection[str]) -> str:
        return next((job_id for job_id in self._list(succession.name) if job_id not in known), "")

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        with self.kill.spared():
            return {job_id: self._move_on(job_id) for job_id in sorted(job_ids)}

    def explain(self, job_id: str) -> str:
        return ""

    def stop(self, job_ids: Collection[str]) -> None:
        pass

    def cancel(self, job_ids: Collection[str]) -> None:
        for job_id in job_ids:
            self._write(job_id, looks=9)

    def close(self) -> None:
        pass

    def list_left(self) -> list[str]:
        """Jobs that have neither ended nor been cancelled."""
        return [job_id for job_id in self._list("") if self._read(job_id)["looks"] < 3]

    def list_names(self) -> list[str]:
        """Names of all jobs, in order."""
        return [str(self._read(job_id)["name"]) for job_id in self._list("")]

    def _move_on(self, job_id: str) -> JobSight:
        if not self._path(job_id).exists():
            return UNSEEN
        job = self._read(job_id)
        before = [each for each in self._list(job["name"]) if each < job_id]
        if job["looks"] < 3 and any(self._read(each)["looks"] < 3 for each in before):
            return QUEUED
        folder = trial_folder(self.store, job["trial"])
        if job["looks"] == 1 and not folder.done.exists():
            start_attempt(folder, job_id)
        if job["looks"] == 2 and len(list_starts(folder.path)) > 1:
            write_artifact(folder.done, make_outcome(job["trial"]))
        self._write(job_id, looks=job["looks"] + 1)
        return (QUEUED, RUNNING, RUNNING, ended(Verdict.PREEMPTED))[min(job["looks"], 3)]

    def _list(self, name: str) -> list[str]:
        jobs = sorted(path.name for path in (self.store / "queue").iterdir())
        return [job_id for job_id in jobs if not name or self._read(job_id)["name"] == name]

    def _read(self, job_id: str) -> dict[str, Any]:
        return dict(json.loads(self._path(job_id).read_text()))

    def _write(self, job_id: str, *, looks: int) -> None:
        self._path(job_id).write_text(json.dumps({**self._read(job_id), "looks": looks}))

    def _path(self, job_id: str) -> Path:
        return self.store / "queue" / job_id


def list_starts(trial_dir: Path) -> list[str]:
    """Jobs that ran the trial, in order."""
    return [str(event.details["job_id"]) for event in read_events(trial_dir) if event.kind == "started"]


def test_a_driver_killed_at_any_point_runs_nothing_twice_and_leaves_no_job_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("drive", "submission", "successors"):
        monkeypatch.setattr(f"windtunnel.launch.{module}.IN_FLIGHT_S", 0.0)
    survived = next(number for number in range(1, MAX_POINTS) if not kill_and_go_on(tmp_path / str(number), number))
    assert survived > 2 * (2 + 2 * 2)  # at least the events of a submission and of two successors, and the jobs


def kill_and_go_on(store: Path, number: int) -> bool:
    """Whether a driver reached the kill point `number`; a second driver then brings all to the same end."""
    (store / "queue").mkdir(parents=True)
    killed = drive_in_child(drive, store, number)
    if killed:
        assert not drive_in_child(drive, store, 0)
    cluster = SingletonCluster(store, KillPoint(0))
    folder = trial_folder(store, TRIAL.id)
    starts = list_starts(folder.path)
    assert folder.done.exists(), f"killed at {number}: it is lost"
    assert len(starts) == len(set(starts)) == 2, f"killed at {number}: it ran in jobs {starts}"
    names = cluster.list_names()
    anew = names.count(names[0]) > 1 and len(set(names)) > 1
    assert not anew, f"killed at {number}: it was submitted anew, though a job waited"
    left = cluster.list_left()
    assert not left, f"killed at {number}: jobs {left} are left"
    return killed


def drive(store: Path, kill: KillPoint) -> int:
    context = make_slurm_context(store, sweep=SweepSettings(settle_s=0, poll_s=1e-6, successor=True))
    courses, cluster = make_courses(context, TRIAL), SingletonCluster(store, kill)
    successors = Successors(context, cluster, cluster, say=lambda line: None)
    driver = Driver(context, cluster, say=lambda line: None, successors=successors)
    return drive_to_end(driver, courses)
