"""The driver against a place that tests move along: what is tried again, what is left, and what is told."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from time import time as clock

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
from windtunnel.artifacts import to_plain, write_artifact
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.launch.lookout import Lookout
from windtunnel.launch.views import view_entry
from windtunnel.ledger.layout import write_next_attempt
from windtunnel.ledger.lease import Holder
from windtunnel.ledger.log import append_event, read_events
from windtunnel.ledger.reconcile import JobSight, Phase
from windtunnel.records.trial import StepRecord, Verdict
from windtunnel.settings.sweep import RetrySettings, SweepSettings


@pytest.mark.parametrize("verdict", [Verdict.NODE_FAIL, Verdict.LOST, Verdict.PREEMPTED])
def test_what_is_no_error_of_the_users_is_tried_again_until_its_own_budget_is_used_up(
    tmp_path: Path, verdict: Verdict
) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings(node_fail=1, lost=1, preempted=1))
    for job_id in ("1", "2"):
        assert backend.submitted[-1][0] == course.trial.id
        end_attempt(course.folder, start_attempt(course.folder, job_id), verdict, job_id=job_id)
        backend.sights[job_id] = ended(None)
        driver.step([course])
        driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, course.entry.attempts, len(backend.submitted)) == (verdict, 2, 2)
    assert course.entry.evidence == f"the cause; its one retry after {verdict} is used up"


def test_a_fresh_driver_counts_the_same_retries(tmp_path: Path) -> None:
    first, course, backend = begin(tmp_path, RetrySettings(preempted=1))
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.PREEMPTED, job_id="1")
    backend.sights["1"] = ended(Verdict.PREEMPTED)
    for _ in range(2):
        first.step([course])
    second, again, _ = begin(tmp_path, RetrySettings(preempted=1), backend=backend, step=False)
    end_attempt(again.folder, start_attempt(again.folder, "2"), Verdict.PREEMPTED, job_id="2")
    backend.sights["2"] = ended(Verdict.PREEMPTED)
    second.step([again])
    assert again.entry is not None
    assert again.entry.evidence.endswith("its one retry after PREEMPTED is used up")
    assert len(backend.submitted) == 2


def test_a_new_command_gives_an_unfinished_trial_one_more_try(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings(preempted=0))
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.PREEMPTED, job_id="1")
    backend.sights["1"] = ended(Verdict.PREEMPTED)
    driver.step([course])
    assert course.entry is not None
    assert len(backend.submitted) == 1
    begin(tmp_path, RetrySettings(preempted=0), backend=backend)
    assert len(backend.submitted) == 2


def test_a_timeout_is_tried_again_from_a_new_checkpoint_only(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings())
    (course.folder.path / "checkpoints" / "step-00000040").mkdir(parents=True)
    for job_id in ("1", "2"):
        end_attempt(course.folder, start_attempt(course.folder, job_id), Verdict.TIMEOUT, job_id=job_id)
        backend.sights[job_id] = ended(Verdict.TIMEOUT)
        driver.step([course])
        driver.step([course])
    assert course.entry is not None
    assert len(backend.submitted) == 2
    assert "no checkpoint newer than that of step 40" in course.entry.evidence


@pytest.mark.parametrize("verdict", [Verdict.OOM, Verdict.FAILED])
def test_a_trials_own_fault_is_final_and_retried_only_when_asked(tmp_path: Path, verdict: Verdict) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings())
    end_attempt(course.folder, start_attempt(course.folder, "1"), verdict, job_id="1")
    driver.step([course])
    assert course.entry is not None
    assert course.entry.verdict == verdict
    asked = RetrySettings(failed=1, out_of_memory=1)
    _, again, _ = begin(tmp_path, asked, backend=backend)
    assert (again.entry, len(backend.submitted)) == (None, 2)


def test_a_failed_trial_is_published_with_where_it_ran_and_how_far_it_came(tmp_path: Path) -> None:
    driver, course, _ = begin(tmp_path)
    attempt = write_next_attempt(course.folder)
    append_event(course.folder.path, "started", attempt=attempt, job_id="1", hosts=["n3", "n4"])
    line = StepRecord(
        step=19, attempt=1, loss=7.425, learning_rate=None, samples_per_s=None, step_s=None, elapsed_s=1.0
    )
    course.folder.metrics.write_text(json.dumps(asdict(line)) + "\n")
    end_attempt(course.folder, attempt, Verdict.FAILED, job_id="1")
    driver.step([course])
    assert course.entry is not None
    view = view_entry(to_plain(course.entry))
    assert (view.state, view.hosts, view.nodes, view.step, view.loss) == ("FAILED", "n[3-4]", 2, 19, 7.425)


def test_the_job_of_a_trial_that_is_over_does_not_stay_in_the_queue_when_slurm_put_it_there_again(
    tmp_path: Path,
) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings())
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.FAILED, job_id="1")
    backend.sights["1"] = QUEUED
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, backend.cancelled) == (Verdict.FAILED, ["1"])


def test_a_job_that_slurm_starts_again_after_a_preemption_is_waited_for(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings(preempted=0))
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.PREEMPTED, job_id="1")
    for sight in (QUEUED, RUNNING):
        backend.sights["1"] = sight
        driver.step([course])
    start_attempt(course.folder, "1")
    write_artifact(course.folder.done, make_outcome(course.trial.id, attempt=2, resumed=1))
    backend.sights["1"] = ended(None)
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, len(backend.submitted)) == (Verdict.COMPLETED, 1)


def test_a_preemption_that_cancels_within_ten_minutes_is_no_timeout(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings())
    # Of a trial of 5 minutes, the supervisor takes a late signal for its time limit.
    end_attempt(course.folder, start_attempt(course.folder, "1"), Verdict.TIMEOUT, job_id="1")
    backend.sights["1"] = ended(Verdict.PREEMPTED)
    driver.step([course])
    told = [event.details["verdict"] for event in read_events(course.folder.path) if event.kind == "verdict"]
    assert told == ["PREEMPTED"]
    driver.step([course])
    assert len(backend.submitted) == 2


def test_a_trial_that_its_nodes_keep_failing_of_is_taken_from_slurms_own_requeue(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings(node_fail=1))
    for _ in range(2):
        start_attempt(course.folder, "1")
        backend.sights["1"] = QUEUED
        driver.step([course])
    assert backend.cancelled == ["1"]
    assert course.entry is not None
    assert course.entry.verdict == Verdict.NODE_FAIL
    assert "again after each of its nodes failed" in course.entry.evidence


def test_a_job_taken_from_its_failing_nodes_costs_the_other_trials_in_it_nothing(tmp_path: Path) -> None:
    context = make_slurm_context(tmp_path, sweep=SweepSettings(settle_s=0, retries=RetrySettings(node_fail=0)))
    first, second = courses = make_courses(context, make_trial("a"), make_trial("b"))
    for course in courses:
        course.folder.path.mkdir(parents=True)
        append_event(course.folder.path, "submitting", attempt=0, submission="x", index=0)
        append_event(course.folder.path, "submitted", attempt=0, submission="x", job_id="77")
    start_attempt(first.folder, "77")
    append_event(second.folder.path, "waiting", attempt=0, job_id="77")
    backend = FakeBackend(tmp_path, sights={"77": QUEUED})
    driver = Driver(context, backend, say=lambda line: None)
    driver.attach(courses)
    driver.step(courses)
    backend.sights["77"] = ended(Verdict.CANCELLED)
    for _ in range(2):
        driver.step(courses)
    assert (backend.cancelled, second.entry, second.job_id) == (["77"], None, "1")
    assert first.entry is not None
    assert first.entry.verdict == Verdict.NODE_FAIL


def test_one_of_five_that_sbatch_refuses_costs_no_other(tmp_path: Path) -> None:
    context = make_slurm_context(tmp_path)
    trials = [make_trial(name) for name in "abcde"]
    backend = FakeBackend(tmp_path, refused={trials[2].id: "sbatch refused it: QOSMaxCpuPerJobLimit"})
    courses = make_courses(context, *trials)
    driver = Driver(context, backend, say=lambda line: None)
    driver.attach(courses)
    driver.step(courses)
    assert [course.under_way for course in courses] == [True, True, False, True, True]
    assert courses[2].entry is not None
    assert courses[2].entry.verdict == Verdict.CANCELLED


def test_a_result_that_the_file_system_shows_late_counts(tmp_path: Path) -> None:
    slow = SweepSettings(settle_s=60)
    driver, course, backend = begin(tmp_path, sweep=slow)
    start_attempt(course.folder, "1")
    backend.sights["1"] = replace(ended(None), ended_at=clock())
    driver.step([course])
    assert course.entry is None
    write_artifact(course.folder.done, make_outcome(course.trial.id))
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, len(backend.submitted)) == (Verdict.COMPLETED, 1)


def test_a_dead_supervisors_lease_on_another_host_is_freed_by_slurms_word(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, RetrySettings(lost=1))
    start_attempt(course.folder, "1")
    hold(course, Holder("n3", 7, "boot:1", clock(), job_id="1"))
    driver.step([course])
    assert not [event for event in read_events(course.folder.path) if event.kind == "verdict"]
    backend.sights["1"] = ended(None)
    driver.step([course])
    driver.step([course])
    assert len(backend.submitted) == 2
    assert sorted(path.name for path in course.folder.lease.iterdir()) == ["1", "2"]


@pytest.mark.parametrize("sight", [ended(Verdict.NODE_FAIL), RUNNING])
def test_a_lease_is_not_freed_while_its_holder_may_live(tmp_path: Path, sight: JobSight) -> None:
    driver, course, backend = begin(tmp_path)
    start_attempt(course.folder, "1")
    hold(course, Holder("n3", 7, "boot:1", clock(), job_id="1"))
    backend.sights["1"] = sight
    driver.step([course])
    assert (course.entry, len(backend.submitted)) == (None, 1)
    assert [path.name for path in course.folder.lease.iterdir()] == ["1"]


def test_a_live_driver_follows_a_wish_to_cancel_and_the_next_command_runs_the_trial(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path)
    attempt = start_attempt(course.folder, "1")
    append_event(course.folder.path, "cancelling", attempt=attempt, user="rosa")
    end_attempt(course.folder, attempt, Verdict.PREEMPTED, job_id="1")
    backend.sights["1"] = JobSight(Phase.UNSURE)  # without accounting nobody else says so
    driver.step([course])
    assert course.entry is not None
    assert course.entry.evidence.startswith("cancelled by rosa")
    assert (course.entry.verdict, len(backend.submitted)) == (Verdict.CANCELLED, 1)
    begin(tmp_path, backend=backend)
    assert len(backend.submitted) == 2


def test_a_trial_that_was_cancelled_for_another_study_alone_goes_on_for_this_one(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path)
    attempt = start_attempt(course.folder, "1")
    append_event(course.folder.path, "cancelling", attempt=attempt, user="rosa", study="other")
    end_attempt(course.folder, attempt, Verdict.PREEMPTED, job_id="1")
    backend.sights["1"] = JobSight(Phase.UNSURE)
    for _ in range(2):
        driver.step([course])
    assert course.entry is None
    assert len(backend.submitted) == 2
    start_attempt(course.folder, "2")
    write_artifact(course.folder.done, make_outcome(course.trial.id, attempt=2))
    driver.step([course])
    assert course.entry.verdict == Verdict.COMPLETED


def test_a_wish_reaches_a_trial_that_was_about_to_be_submitted(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path, step=False)
    course.folder.path.mkdir(parents=True)
    append_event(course.folder.path, "cancelling", attempt=0, user="rosa")
    driver.step([course])
    assert course.entry is not None
    assert (course.entry.verdict, backend.submitted) == (Verdict.CANCELLED, [])


def test_of_two_studies_that_share_a_trial_one_submits_it_and_both_watch_it(tmp_path: Path) -> None:
    first, here, backend = begin(tmp_path, step=False)
    second, there, _ = begin(tmp_path, backend=backend, step=False)
    for _ in range(2):
        first.step([here])
        second.step([there])
    assert [trial_id for trial_id, _ in backend.submitted] == [here.trial.id]
    assert here.job_id == there.job_id == "1"
    start_attempt(here.folder, "1")
    write_artifact(here.folder.done, make_outcome(here.trial.id))
    for driver, course in ((first, here), (second, there)):
        driver.step([course])
        assert course.entry is not None
        assert course.entry.verdict == Verdict.COMPLETED


def test_a_slurm_that_stays_silent_leaves_its_jobs_to_the_next_command(tmp_path: Path) -> None:
    driver, course, backend = begin(tmp_path)
    backend.silent_s = 6 * 3600
    driver.step([course])
    assert course.entry is not None
    assert course.entry.verdict == Verdict.LOST
    assert "has not answered for 6 h" in course.entry.evidence
    assert [event.kind for event in read_events(course.folder.path)] == ["submitting", "submitted"]


def test_the_metrics_of_a_trial_that_is_done_are_not_read(tmp_path: Path) -> None:
    context = make_slurm_context(tmp_path)
    done, open_ = courses = make_courses(context, make_trial("a"), make_trial("b"))
    for course in courses:
        course.folder.path.mkdir(parents=True)
        course.folder.metrics.write_text('{"step": 3}\n')
    write_artifact(done.folder.done, make_outcome(done.trial.id))
    Driver(context, FakeBackend(tmp_path), say=lambda line: None).attach(courses)
    assert [course.progress.read_last_step() for course in courses] == [0, 0]
    assert (done.entry is not None, open_.progress.last) == (True, None)


def test_why_jobs_wait_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    _, course, backend = begin(tmp_path)
    backend.sights["1"] = JobSight(Phase.QUEUED, evidence="JobHeldUser")
    lookout = Lookout(backend, say=said.append, first_waits_s=0.0)
    for _ in range(2):
        lookout.tell_waits([course], lookout.look([course]))
    (told,) = said
    assert told == "jobs that wait in the queue: 1 JobHeldUser"


def begin(
    store: Path,
    retries: RetrySettings | None = None,
    *,
    sweep: SweepSettings | None = None,
    backend: FakeBackend | None = None,
    step: bool = True,
    said: list[str] | None = None,
) -> tuple[Driver, Course, FakeBackend]:
    """A driver of one trial, attached, and with `step` after its first step."""
    sweep = sweep or SweepSettings(settle_s=0, retries=retries or RetrySettings())
    context = make_slurm_context(store, sweep=sweep)
    backend = backend or FakeBackend(store)
    courses = make_courses(context, make_trial("a"))
    driver = Driver(context, backend, say=(said if said is not None else []).append)
    driver.attach(courses)
    if step:
        driver.step(courses)
    return driver, courses[0], backend


def hold(course: Course, holder: Holder) -> None:
    course.folder.lease.mkdir(parents=True)
    (course.folder.lease / "1").write_text(json.dumps(vars(holder)))
