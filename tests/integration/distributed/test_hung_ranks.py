"""Ranks that get no further, in real runs."""

import os
import signal
import time

import pytest

from toy_trial import run_ranks, start_ranks, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.hang import describe_hang, read_hang
from windtunnel.records.hang import HUNG_CODE, name_stacks
from windtunnel.records.trial import TrialOutcome

SLEEPY = """
import time
from torch import nn

class Sleepy(nn.Linear):
    def __init__(self, n_features, n_outputs, window, *, rank, at_call=0, slow_s=0.0):
        super().__init__(n_features, n_outputs)
        self.rank, self.at_call, self.slow_s, self.calls = rank, at_call, slow_s, 0

    def forward(self, x_btc):
        import os
        self.calls += self.training
        if self.training and os.environ.get("RANK") == str(self.rank):
            time.sleep(600 if self.calls == self.at_call else self.slow_s)
        return super().forward(x_btc[:, -1])
"""


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return write_features(tmp_path_factory.mktemp("features"))


def _start(tmp_path, features, *, at_call):
    (tmp_path / "sleepy_toy_model.py").write_text(SLEEPY)
    model = {"name": "own", "_target_": "sleepy_toy_model.Sleepy", "args": {"rank": 1, "at_call": at_call}}
    settings = trial_settings(ranks=2, model=model, steps=100_000, checkpoint_every=100_000, log_every=10)
    write_trial(tmp_path / "t", features, settings, import_root=str(tmp_path))
    return start_ranks(tmp_path / "t", ranks=2)


@pytest.mark.gloo
def test_a_rank_that_hangs_is_named_by_where_all_stand_and_stacks_are_kept(tmp_path, features):
    children = _start(tmp_path, features, at_call=60)
    for child in children:
        child.join(timeout=90)
    assert [child.exitcode for child in children] == [HUNG_CODE] * 2
    hang = read_hang(tmp_path / "t/attempts/1", ranks=2)
    assert hang is not None
    assert "suspect: rank 1 on " in describe_hang(hang)
    assert "in forward of step" in describe_hang(hang)
    stacks = (tmp_path / "t/attempts/1" / name_stacks(1)).read_text()
    assert "sleepy_toy_model.py" in stacks


@pytest.mark.gloo
def test_a_stopped_rank_is_named_because_it_says_nothing(tmp_path, features):
    children = _start(tmp_path, features, at_call=0)
    metrics = tmp_path / "t/metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (metrics.exists() and metrics.read_bytes().count(b"\n") > 5):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(children[1].pid, signal.SIGSTOP)
    children[0].join(timeout=60)
    assert children[0].exitcode == HUNG_CODE
    children[1].kill()
    hang = read_hang(tmp_path / "t/attempts/1", ranks=2)
    assert hang is not None
    assert "suspect: rank 1, which did not even say where it stands" in describe_hang(hang)


@pytest.mark.gloo
def test_a_slow_rank_is_named_within_twenty_steps_with_its_host(tmp_path, features):
    (tmp_path / "sleepy_toy_model.py").write_text(SLEEPY)
    model = {"name": "own", "_target_": "sleepy_toy_model.Sleepy", "args": {"rank": 1, "slow_s": 0.02}}
    write_trial(
        tmp_path / "t", features, trial_settings(ranks=2, model=model, log_every=10), import_root=str(tmp_path)
    )
    assert run_ranks(tmp_path / "t", ranks=2) == [0, 0]
    outcome = read_artifact(tmp_path / "t/DONE.json", TrialOutcome)
    (note,) = outcome.notes
    assert note.startswith(f"straggler: rank 1 on {outcome.rank_hosts[1]} takes ")
    assert int(note.rpartition(" ")[2]) <= 20
