"""Where the time of real trials goes that are killed and resumed."""

import json
import math
import statistics
import time

import pytest

from toy_trial import run_ranks, start_ranks, trial_settings, write_features, write_trial
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import append_event
from windtunnel.ledger.traces import read_goodput
from windtunnel.records.goodput import Bucket

STEPS = 600


def _kill_after_line(children, metrics, line):
    deadline = time.monotonic() + 60
    while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= line):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    for child in children:
        child.kill()
        child.join()


@pytest.mark.gloo
def test_the_time_of_a_killed_and_resumed_trial_is_accounted_for(tmp_path):
    folder = TrialFolder(tmp_path / "t")
    ranks = 2
    settings = trial_settings(ranks=ranks, steps=STEPS, checkpoint_every=100, log_every=10)
    write_trial(folder.path, write_features(tmp_path / "features"), settings)
    began = time.monotonic()
    append_event(folder.path, "submitted", attempt=0)
    append_event(folder.path, "started", attempt=1)
    _kill_after_line(start_ranks(folder.path, ranks=ranks), folder.metrics, 35)
    append_event(folder.path, "ended", attempt=1)
    append_event(folder.path, "started", attempt=2)
    assert run_ranks(folder.path, ranks=ranks, attempt=2) == [0] * ranks
    wall_s = time.monotonic() - began
    append_event(folder.path, "ended", attempt=2)
    goodput = read_goodput(folder, read_facts(folder, steps=STEPS), now=time.time())
    assert math.fsum(goodput.seconds.values()) == pytest.approx(wall_s, rel=1e-3)
    assert goodput.seconds[Bucket.UNKNOWN] == 0.0
    for bucket in (Bucket.START_UP, Bucket.RESTORE, Bucket.REPLAY, Bucket.STALL, Bucket.DRAIN, Bucket.EVALUATE):
        assert goodput.seconds[bucket] > 0.0, bucket
    assert goodput.new_steps == STEPS
    told = [json.loads(line)["step_s"] for line in folder.metrics.read_text().splitlines()]
    assert goodput.steps_per_s == pytest.approx(1 / statistics.fmean(told), rel=0.5)
    assert all(row.seconds[Bucket.PRODUCTIVE] > 0.0 for row in goodput.attempts)
