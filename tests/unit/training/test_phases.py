import torch

from windtunnel.comm.single import SingleComm
from windtunnel.records.meter import RankPhases, StepPhase, average_step, sum_error
from windtunnel.training.mesh import Mesh
from windtunnel.training.meters import Meters
from windtunnel.training.phases import PhaseClock, call_after_backward

CPU = torch.device("cpu")
MESH = Mesh(0, 1, CPU, SingleComm(), None)


class Hands:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def test_phases_add_up_to_the_time_of_the_loop_and_each_has_its_own():
    hands = Hands()
    clock = PhaseClock(CPU, now=hands)
    clock.begin()
    for _ in range(3):
        clock.start_step()
        hands.seconds += 2
        clock.enter(StepPhase.FORWARD)
        hands.seconds += 4
        clock.stop_step()
        hands.seconds += 1
        assert clock.take().step_times_s == [6]
    clock.enter(StepPhase.CHECKPOINT)
    hands.seconds += 5
    clock.close()
    phases = clock.read()
    taken = {name: taken_s for name, taken_s in phases.seconds.items() if taken_s}
    assert taken == {"data_wait": 6, "forward": 12, "checkpoint": 5, "other": 3}
    assert (phases.wall_s, phases.steps, sum_error(phases)) == (26, 3, 0)


def test_a_new_begin_forgets_the_phases_and_keeps_the_times_of_steps():
    hands = Hands()
    clock = PhaseClock(CPU, now=hands)
    for taken_s in (7, 2):
        clock.begin()
        clock.start_step()
        hands.seconds += taken_s
        clock.stop_step()
    taken = clock.take()
    clock.close()
    assert taken.step_times_s == [7, 2]
    assert sum(taken.phases_s) == 9
    assert (clock.read().steps, clock.read().wall_s, clock.read().seconds["data_wait"]) == (1, 2, 2)


def test_a_meter_counts_phases_from_its_first_step_after_warm_up():
    meters = Meters(MESH, discard_steps=2)
    meters.begin()
    for step in range(1, 6):
        meters.start_step()
        meters.stop_step(torch.tensor(1.0), step=step)
    meters.flush()
    meters.close()
    assert meters.phases.steps == 3
    assert set(meters.take_phases(5)) == set(StepPhase)


def test_gradients_are_whole_when_the_call_after_backward_comes():
    weight = torch.ones(3, requires_grad=True)
    seen = []
    loss = (weight * 2).sum()
    call_after_backward(loss, lambda: seen.append(weight.grad is not None))
    loss.backward()
    assert seen == [True]


def test_a_step_is_the_mean_over_ranks_and_ranks_without_steps_have_none():
    ranks = [RankPhases(4.0, 2, {"forward": 4.0}), RankPhases(2.0, 2, {"forward": 2.0}), RankPhases(1.0, 0, {})]
    assert average_step(ranks) == {"forward": 1.5}
    assert average_step([]) == {}


def test_the_sum_of_no_time_is_right():
    assert sum_error(RankPhases(0.0, 0, {})) == 0.0
    assert sum_error(RankPhases(2.0, 1, {"forward": 1.0})) == 0.5
