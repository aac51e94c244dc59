from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_backend import QUEUED, FakeBackend, ended, make_courses, make_slurm_context, start_attempt
from fake_trials import make_trial
from windtunnel.attempt.settle import settle
from windtunnel.launch.course import Course
from windtunnel.launch.drive import Driver
from windtunnel.launch.nodebook import NodeBook
from windtunnel.ledger.nodes import read_failures
from windtunnel.records.cluster import Node
from windtunnel.records.trial import AttemptEnd, NodeFault, Verdict
from windtunnel.settings.sweep import ExclusionSettings

TEN = tuple(f"n{number}" for number in range(10))


def test_a_node_that_fails_under_two_trials_is_left_out_of_what_is_submitted_next(tmp_path: Path) -> None:
    driver, courses, backend, said = begin(tmp_path, "ab")
    for course in courses:
        driver.step([course])
        start_attempt(course.folder, course.job_id, host="n3")
        backend.sights[course.job_id] = ended(Verdict.NODE_FAIL)
        driver.step([course])
    driver.step(courses)
    assert backend.submitted[-2:] == [(courses[0].trial.id, ("n3",)), (courses[1].trial.id, ("n3",))]
    assert "node n3 failed 2 times in 24 h: left out of submissions for 12 h" in said


def test_another_study_of_the_store_leaves_it_out_too(tmp_path: Path) -> None:
    test_a_node_that_fails_under_two_trials_is_left_out_of_what_is_submitted_next(tmp_path)
    driver, courses, backend, _ = begin(tmp_path, "c")
    driver.step(courses)
    assert backend.submitted == [(courses[0].trial.id, ("n3",))]


def test_a_node_from_which_slurm_took_a_job_is_written_down_once_if_it_is_down(
    tmp_path: Path,
) -> None:
    driver, courses, backend, _ = begin(tmp_path, "a", states={"n3": "DOWN*"})
    driver.step(courses)
    start_attempt(courses[0].folder, "1", host="n3")
    backend.sights["1"] = QUEUED
    for _ in range(3):
        driver.step(courses)
    assert [(failure.node, failure.verdict) for failure in read_failures(tmp_path)] == [("n3", Verdict.NODE_FAIL)]
    again, courses, _, _ = begin(tmp_path, "a", states={"n3": "DOWN*"}, backend=backend)
    again.step(courses)
    assert len(read_failures(tmp_path)) == 1


@pytest.mark.parametrize(("state", "written"), [("IDLE", 0), ("DOWN+NOT_RESPONDING", 1)])
def test_of_a_job_of_several_nodes_the_one_that_is_down_is_written_down(
    tmp_path: Path, state: str, written: int
) -> None:
    driver, courses, backend, _ = begin(tmp_path, "a", states={"n3": state, "n4": "MIXED"})
    driver.step(courses)
    backend.sights["1"] = ended(Verdict.NODE_FAIL, hosts=("n3", "n4"))
    driver.step(courses)
    assert [failure.node for failure in read_failures(tmp_path)] == ["n3"] * written


def test_a_node_that_an_attempt_found_unfit_is_left_out_of_its_very_next_job(tmp_path: Path) -> None:
    driver, courses, backend, said = begin(tmp_path, "a", states={"n3": "IDLE", "n4": "IDLE"})
    driver.step(courses)
    folder = courses[0].folder
    start_attempt(folder, "1", host="n3")
    faults = (NodeFault("n4", "nvidia-smi: No devices were found", hard=True),)
    end = AttemptEnd(1, 69, Verdict.NODE_FAIL, "node n4 is not fit", ("n3", "n4"), "1", 1.0, faults)
    settle(folder, end)
    backend.sights["1"] = ended(Verdict.FAILED, hosts=("n3", "n4"))
    driver.step(courses)
    driver.step(courses)
    assert backend.submitted[-1] == (courses[0].trial.id, ("n4",))
    assert "node n4 was found unfit: left out of submissions for 12 h" in said


def test_a_small_partition_is_told_which_node_to_drain(tmp_path: Path) -> None:
    test_a_node_that_fails_under_two_trials_is_left_out_of_what_is_submitted_next(tmp_path)
    said: list[str] = []
    book = NodeBook(tmp_path, ExclusionSettings(), said.append, partition_hosts=lambda name: TEN[:8])
    assert book.exclude("main", needed=1) == ()
    assert said == [
        "node n3 failed 2 times in 24 h, but is not left out: sweep.exclusion.at_most=0.1 of 8 nodes allows no more; "
        "have it drained"
    ]


def begin(
    store: Path, names: str, *, states: dict[str, str] | None = None, backend: FakeBackend | None = None
) -> tuple[Driver, list[Course], FakeBackend, list[str]]:
    """A driver attached to trials, in a partition of ten nodes."""
    context = make_slurm_context(store)
    backend = backend or FakeBackend(store)
    said: list[str] = []

    def read_states(hosts: Sequence[str]) -> tuple[Node, ...]:
        return tuple(Node(host, 4, 1000, 0, (states or {}).get(host, "IDLE"), ()) for host in hosts)

    nodes = NodeBook(store, context.sweep.exclusion, said.append, lambda name: TEN, read_states)
    driver = Driver(context, backend, say=said.append, nodes=nodes)
    courses = make_courses(context, *(make_trial(name) for name in names))
    driver.attach(courses)
    return driver, courses, backend, said
