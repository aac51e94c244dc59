import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import ValidationError
from submitit.core.utils import DelayedSubmission

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
from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.launch.line import SlurmLine
from windtunnel.launch.onslurm import SlurmBackend
from windtunnel.launch.successors import Successors
from windtunnel.launch.withdraw import plan_cancelling
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.story import Succession, find_begun
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import RetrySettings, SweepSettings
from windtunnel.slurm.limits import Limits

TRIAL = make_trial("a")
SWEEP = SweepSettings(settle_s=0, poll_s=1e-6, successor=True)


@dataclass
class FakeLine:
    """A queue that takes each successor, unless it has a `problem`. Ids count from 101."""

    taken: list[str] = field(default_factory=list)
    problem: Exception | None = None
    found: str = ""

    def queue(self, trial: PlannedTrial, name: str, *, exclude: Sequence[str] = ()) -> str:
        if self.problem is not None:
            raise self.problem
        self.taken.append(str(101 + len(self.taken)))
        return self.taken[-1]

    def find(self, trial: PlannedTrial, succession: Succession, known: Collection[str]) -> str:
        if isinstance(self.problem, CommandError):
            raise self.problem
        return self.found if self.found not in known else ""


@dataclass
class Stage:
    """A driver of one trial, whose jobs tests move along."""

    store: Path
    sweep: SweepSettings = SWEEP
    said: list[str] = field(default_factory=list)
    line: FakeLine = field(default_factory=FakeLine)

    def __post_init__(self) -> None:
        self.backend = FakeBackend(self.store, alone=True)
        self.begin()

    def begin(self) -> None:
        """A driver that knows nothing yet."""
        context = make_slurm_context(self.store, sweep=self.sweep)
        successors = Successors(context, self.backend, self.line, say=self.said.append)
        self.driver = Driver(context, self.backend, say=self.said.append, successors=successors)
        (self.course,) = make_courses(context, TRIAL)
        self.driver.attach([self.course])

    def step(self, times: int = 1) -> Course:
        for _ in range(times):
            self.driver.step([self.course])
        return self.course

    def kinds(self) -> list[str]:
        return [event.kind for event in read_events(self.course.folder.path)]

    def run(self, job_id: str = "1") -> int:
        """The job runs, and its attempt starts."""
        self.backend.sights[job_id] = RUNNING
        return start_attempt(self.course.folder, job_id)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The trial's job is submitted, and another waits behind it."""
    found = Stage(tmp_path)
    found.step(2)
    found.backend.sights["101"] = QUEUED
    return found


def test_one_job_waits_behind_each_job_and_the_ledger_tells_it_before_and_after(stage: Stage) -> None:
    assert stage.kinds() == ["submitting", "submitted", "queueing", "queued"]
    stage.step(3)
    assert stage.line.taken == ["101"]
    stage.begin()
    assert stage.step(2).successor == "101"
    assert stage.line.taken == ["101"]


def test_the_job_that_waits_takes_the_place_of_one_that_ended_and_another_one_waits_behind_it(stage: Stage) -> None:
    stage.run()
    stage.backend.sights["1"] = ended(Verdict.NODE_FAIL)
    course = stage.step()
    assert (course.job_id, course.under_way, len(stage.backend.submitted)) == ("101", True, 1)
    stage.step()
    assert stage.kinds()[4:] == ["started", "verdict", "submitted", "queueing", "queued"]
    assert (course.successor, stage.backend.cancelled) == ("102", [])


def test_a_successor_that_started_by_slurms_hand_alone_is_watched_instead(stage: Stage) -> None:
    stage.run()
    stage.step()
    append_event(stage.course.folder.path, "verdict", attempt=1, verdict="LOST", evidence="gone", job_id="1")
    stage.run("101")
    stage.backend.sights["1"] = ended(None)
    course = stage.step()
    assert (course.job_id, course.entry, len(stage.backend.submitted)) == ("101", None, 1)
    assert stage.kinds()[4:] == ["started", "verdict", "started", "queueing", "queued"]


def test_while_a_successor_decides_nothing_is_judged_and_nothing_submitted(stage: Stage) -> None:
    stage.run()
    stage.backend.sights |= {"1": ended(None), "101": RUNNING}
    assert stage.step(3).entry is None
    assert "verdict" not in stage.kinds()
    stage.backend.sights["101"] = ended(None)
    stage.step(2)
    assert [job for job, _ in stage.backend.submitted] == [TRIAL.id] * 2
    assert stage.kinds().count("verdict") == 1


@pytest.mark.parametrize("verdict", [Verdict.COMPLETED, Verdict.FAILED, Verdict.CANCELLED])
def test_the_successor_of_a_trial_that_is_not_tried_again_is_cancelled(stage: Stage, verdict: Verdict) -> None:
    attempt = stage.run()
    if verdict == Verdict.COMPLETED:
        write_artifact(stage.course.folder.done, make_outcome(TRIAL.id))
    end_attempt(stage.course.folder, attempt, verdict, job_id="1")
    stage.backend.sights["1"] = ended(None)
    course = stage.step()
    assert course.entry is not None
    assert course.entry.verdict == verdict
    assert stage.backend.cancelled == ["101"]


def test_a_verdict_tells_a_successor_that_starts_late_whether_the_trial_is_tried_again(tmp_path: Path) -> None:
    sweep = SWEEP.model_copy(update={"retries": RetrySettings(node_fail=0)})
    stage = Stage(tmp_path, sweep)
    stage.step(2)
    stage.run()
    stage.backend.sights |= {"1": ended(Verdict.NODE_FAIL), "101": QUEUED}
    stage.step()
    told = [event.details["again"] for event in read_events(stage.course.folder.path) if event.kind == "verdict"]
    assert (told, stage.backend.cancelled) == ([False], ["101"])


def test_no_job_waits_where_no_budget_is_left_to_go_on_with(tmp_path: Path) -> None:
    none = RetrySettings(node_fail=0, lost=0, preempted=0, timeout=0)
    stage = Stage(tmp_path, SWEEP.model_copy(update={"retries": none}))
    stage.step(3)
    assert (stage.line.taken, stage.kinds()) == ([], ["submitting", "submitted"])


def test_no_job_waits_behind_one_that_shares_its_name(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.backend.alone = False
    stage.step(3)
    assert stage.line.taken == []


@pytest.mark.parametrize("error", [FullQueueError("no room"), ClusterError("no such option")])
def test_a_successor_that_is_refused_costs_the_trial_nothing(tmp_path: Path, error: Exception) -> None:
    stage = Stage(tmp_path, line=FakeLine(problem=error))
    stage.step()
    assert stage.kinds() == ["submitting", "submitted", "queueing", "queued"]
    stage.line.problem = None
    stage.step(2)
    assert stage.line.taken == (["101"] if isinstance(error, FullQueueError) else [])
    assert stage.course.entry is None


def test_a_successor_whose_answer_was_lost_is_found_by_its_name_and_not_queued_twice(tmp_path: Path) -> None:
    stage = Stage(tmp_path, line=FakeLine(problem=CommandError("timed out")))
    stage.step(2)
    assert stage.kinds()[-1] == "queueing"
    stage.line.problem = None
    stage.step(2)
    assert (stage.line.taken, stage.course.successor) == ([], "")  # it may still come
    stage.line.found = "101"
    stage.begin()
    assert stage.step(2).successor == "101"
    assert (stage.line.taken, stage.kinds().count("queueing")) == ([], 1)


def test_a_successor_is_not_given_up_while_slurm_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windtunnel.launch.successors.IN_FLIGHT_S", 0.0)
    stage = Stage(tmp_path, line=FakeLine(problem=CommandError("timed out")))
    stage.step(4)
    assert stage.kinds() == ["submitting", "submitted", "queueing"]
    stage.line.problem = None
    stage.step(4)
    assert stage.kinds()[2:] == ["queueing", "queued", "queueing", "queued"]
    assert stage.course.successor == "101"


def test_whoever_cancels_a_trial_cancels_the_job_behind_it_too(stage: Stage) -> None:
    plan = plan_cancelling(stage.course.read())
    assert plan.job_id == "1"
    assert plan.succession is not None
    assert plan.succession.job_id == "101"


def test_a_trial_that_its_user_cancelled_is_submitted_anew_by_the_next_command_alone(stage: Stage) -> None:
    attempt = stage.run()
    end_attempt(stage.course.folder, attempt, Verdict.CANCELLED, job_id="1")
    stage.backend.sights["1"] = ended(Verdict.CANCELLED)
    stage.begin()
    assert stage.backend.cancelled == ["101"]
    stage.step(2)
    assert (len(stage.backend.submitted), stage.course.job_id) == (2, "2")


def test_each_trial_is_submitted_under_a_name_of_its_own_and_the_next_job_under_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\necho x >> {tmp_path}/n\necho Submitted batch job $(wc -l < {tmp_path}/n)\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    context = make_slurm_context(tmp_path, sweep=SWEEP)
    context.jobs_dir.mkdir()
    backend, trials = SlurmBackend(context, say=print, limits=Limits()), [TRIAL, make_trial("b")]
    for course in make_courses(context, *trials):
        course.folder.path.mkdir(parents=True)
    assert backend.submit(trials).job_ids == {TRIAL.id: "1", trials[1].id: "2"}
    first, second = (find_begun(read_events(context.folder_of(trial).path)) for trial in trials)
    assert first is not None
    assert second is not None
    assert (first.alone, first.name != second.name) == (True, True)
    assert SlurmLine(context).queue(TRIAL, first.name) == "3"
    call = DelayedSubmission.load(context.jobs_dir / "3_submitted.pkl")
    assert "--succeeds" in call.args[0]


def test_a_sweep_whose_trials_share_jobs_has_no_successors() -> None:
    with pytest.raises(ValidationError, match="set trials_per_job=1, or successor=false"):
        SweepSettings(successor=True, trials_per_job=4)
