import os
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_trial
from windtunnel.launch.room import ANY, MAX_REFUSALS, Room
from windtunnel.records.plan import PlannedTrial, Shape
from windtunnel.slurm.limits import Association, Limits, Qos

SHAPE = Shape(1, 1, 1, 0, 64, 5, "main", account="desk")
TIGHT = Shape(1, 1, 1, 0, 64, 5, "main", account="desk", qos="tight")
LIMITS = Limits(
    enforced=frozenset({"limits"}),
    associations=(Association("desk", "", ("normal", "tight"), "", max_submit=20),),
    qos=(Qos("normal"), Qos("tight", max_submit=5)),
)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What squeue shows, and how often it was asked."""
    (tmp_path / "queue").write_text("")
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\ncat {tmp_path}/queue\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "queue"


def test_jobs_in_the_queue_and_those_just_submitted_use_up_the_limit(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 7)
    room = make_room()
    assert room.measure(SHAPE) == 13
    room.take(SHAPE, 10)
    assert room.measure(SHAPE) == 3
    room.leave(SHAPE, 4)
    assert "4 trials wait for room in the queue (MaxSubmitJobs of account 'desk' is 20)" in room.tell_left()


def test_the_least_of_several_limits_counts_each_over_its_own_jobs(queue: Path) -> None:
    queue.write_text("desk|tight|main\n" * 4 + "other|normal|main\n" * 50)
    room = make_room()
    assert (room.measure(TIGHT), room.measure(SHAPE)) == (1, 16)
    room.leave(TIGHT, 1)
    assert "(submit limit of QOS 'tight' is 5)" in room.tell_left()


def test_without_limits_there_is_always_room(queue: Path) -> None:
    room = make_room(limits=Limits())
    assert room.measure(SHAPE) == ANY
    assert len(room.pick(make_trials(SHAPE, 30))) == 30


def test_the_queue_is_read_once_for_what_is_picked_and_its_submission(queue: Path) -> None:
    room = Room(LIMITS, poll_s=30.0)
    assert len(room.pick(make_trials(SHAPE, 5))) == 5
    room.begin()
    assert (queue.parent / "asked").read_text() == "x\n"


def test_trials_that_are_picked_and_come_to_no_submission_do_not_have_the_queue_read_again(queue: Path) -> None:
    room, trials = Room(LIMITS, poll_s=60.0), make_trials(SHAPE, 3)
    assert [len(room.pick(trials)) for _ in range(5)] == [3] * 5
    assert (queue.parent / "asked").read_text() == "x\n"


def test_what_was_left_out_waits_for_the_next_poll_and_then_for_room(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 20)
    room, trials = Room(LIMITS, poll_s=0.0), make_trials(SHAPE, 100)
    assert room.pick(trials) == []
    queue.write_text("desk|normal|main\n" * 12)
    assert room.pick(trials) == trials[:8]


def test_trials_left_out_are_asked_for_once_a_poll(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 20)
    room, trials = Room(LIMITS, poll_s=60.0), make_trials(SHAPE, 100)
    assert [len(room.pick(trials)) for _ in range(5)] == [0] * 5
    assert (queue.parent / "asked").read_text() == "x\n"


def test_those_whose_limit_is_full_do_not_stand_in_the_way_of_others(queue: Path) -> None:
    queue.write_text("desk|tight|main\n" * 5)
    room, others = Room(LIMITS, poll_s=60.0), make_trials(SHAPE, 10)
    assert room.pick([*make_trials(TIGHT, 40), *others]) == others


def test_a_trial_that_comes_to_those_left_out_does_not_wait_for_the_next_poll(queue: Path) -> None:
    queue.write_text("desk|tight|main\n" * 5)
    room, full, other = Room(LIMITS, poll_s=60.0), make_trials(TIGHT, 40), make_trials(SHAPE, 1)
    assert room.pick(full) == []
    assert room.pick([*full, *other]) == other


def test_a_limit_that_two_kinds_of_jobs_share_is_filled_once(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 17)
    room = Room(LIMITS, poll_s=60.0)
    picked = room.pick([*make_trials(TIGHT, 2), *make_trials(SHAPE, 9)])
    assert [trial.shape for trial in picked] == [TIGHT, TIGHT, SHAPE]


def test_trials_of_a_shape_share_the_jobs_that_there_is_room_for(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 18)
    room, trials = Room(LIMITS, poll_s=60.0, per_job=4), make_trials(SHAPE, 11)
    assert room.pick(trials) == trials[:8]


def test_a_trial_that_brings_a_second_job_takes_two_places_of_a_limit_that_has_them(queue: Path) -> None:
    queue.write_text("desk|normal|main\n" * 13)
    room = Room(LIMITS, poll_s=60.0, jobs_each=2)
    assert len(room.pick(make_trials(SHAPE, 9))) == room.measure(SHAPE) == 3
    room.take(SHAPE, 2)
    assert room.measure(SHAPE) == 1
    room.refuse(SHAPE, 1)
    one = replace(LIMITS, associations=(replace(LIMITS.associations[0], max_submit=1),))
    queue.write_text("")
    assert len(Room(one, poll_s=60.0, jobs_each=2).pick(make_trials(SHAPE, 9))) == 1


def test_a_refusal_halves_what_is_tried_and_success_doubles_it(queue: Path) -> None:
    room = make_room(limits=Limits())
    assert room.refuse(SHAPE, 100)
    assert room.measure(SHAPE) == 50
    room.take(SHAPE, 50)
    assert room.measure(SHAPE) == 100


def test_a_single_job_refused_is_tried_later_and_not_for_ever(queue: Path) -> None:
    room = make_room(limits=Limits(), poll_s=60.0)
    assert [room.refuse(SHAPE, 1) for _ in range(MAX_REFUSALS + 1)] == [True] * MAX_REFUSALS + [False]
    assert room.measure(SHAPE) == 0


def test_a_queue_that_cannot_be_read_leaves_the_word_to_sbatch(queue: Path) -> None:
    (queue.parent / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert make_room().measure(SHAPE) == 20


def make_room(*, limits: Limits = LIMITS, poll_s: float = 30.0) -> Room:
    room = Room(limits, poll_s=poll_s)
    room.begin()
    return room


def make_trials(shape: Shape, count: int) -> list[PlannedTrial]:
    return [replace(make_trial(f"{shape.qos}{number}"), shape=shape) for number in range(count)]
