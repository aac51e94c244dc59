import json
import math

import torch

from windtunnel.comm.single import SingleComm
from windtunnel.records.trial import StepRecord
from windtunnel.training.mesh import Mesh
from windtunnel.training.meters import Meters, MeterState, MetricsLog, drop_later_lines, summarise_times

MESH = Mesh(0, 1, torch.device("cpu"), SingleComm(), None)


def _step(meters, loss, step=1):
    meters.start_step()
    meters.stop_step(torch.tensor(loss), step=step)


def test_a_line_is_the_mean_since_the_line_before():
    meters = Meters(MESH, discard_steps=0)
    _step(meters, 1.0)
    meters.flush()  # a checkpoint between two lines
    _step(meters, 2.0)
    meters.flush()
    loss, step_s = meters.take_line()
    assert loss == 1.5
    assert step_s > 0
    _step(meters, 5.0)
    meters.flush()
    assert meters.take_line()[0] == 5.0
    assert meters.state.last_loss == 5.0


def test_the_first_step_whose_loss_is_not_finite_is_named():
    meters = Meters(MESH, discard_steps=0)
    for step, loss in ((40, 1.0), (42, math.nan), (43, math.inf)):  # step 41 was skipped
        _step(meters, loss, step)
    fault = meters.flush()
    assert fault is not None
    assert fault.step == 42
    assert fault.told.startswith("the loss became nan at step 42: lower")
    assert meters.state.pending_losses == []


def test_warm_up_is_left_out_of_the_times_and_counted():
    meters = Meters(MESH, discard_steps=3)
    for _ in range(5):
        _step(meters, 1.0)
        meters.flush()
    times = summarise_times(meters.state)
    assert (times.timed, times.discarded) == (2, 3)


def test_a_trial_of_nothing_but_warm_up_is_timed_by_it():
    times = summarise_times(MeterState([], 1.0, [], [0.1, 0.3, 0.2], []))
    assert (times.median_s, times.p90_s, times.timed, times.discarded) == (0.2, 0.3, 3, 0)


def test_the_90th_percentile_is_a_step_that_was_seen():
    times = summarise_times(MeterState([], 1.0, [float(n) for n in range(1, 11)], [], []))
    assert (times.median_s, times.p90_s) == (5.5, 9.0)


def _record(step):
    return StepRecord(step, 1, 0.5, 1e-3, 100.0, 0.1, 1.0)


def test_a_resumed_run_keeps_the_whole_lines_up_to_its_step(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, write=True)
    for step in (5, 10, 15):
        log.append(_record(step))
    log.sync()
    log.close()
    with path.open("a") as file:
        file.write('{"step":20,"att')
    drop_later_lines(path, 10)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [5, 10]


def test_a_line_torn_before_the_resumed_step_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step":5}\n{"step"')
    drop_later_lines(path, 10)
    assert path.read_text() == '{"step":5}\n'


def test_no_lines_yet_is_no_file(tmp_path):
    drop_later_lines(tmp_path / "metrics.jsonl", 0)
    MetricsLog(tmp_path / "metrics.jsonl", write=False).append(_record(5))
    assert list(tmp_path.iterdir()) == []
