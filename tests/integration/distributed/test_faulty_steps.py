"""Losses that are not finite, in real runs: what the faults were, and what the run made of them."""

import json

import pytest
import torch

from toy_trial import read_log, run_ranks, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.checkpoints.dcp import load_tensors, read_shapes
from windtunnel.records.trial import TrialOutcome
from windtunnel.training.data import load_data, rank_slice, take_rows
from windtunnel.training.precision import derive_seed

FAULTY = """
import torch
from torch import nn

class Faulty(nn.Linear):
    def __init__(self, n_features, n_outputs, window, *, at_call=0, band=(1e9, 1e9)):
        super().__init__(n_features, n_outputs)
        self.at_call, (self.low, self.high), self.calls = at_call, band, 0

    def forward(self, x_btc):
        self.calls += self.training
        bad = self.training and (self.calls == self.at_call or self.low < x_btc[:, -1, 0].max() < self.high)
        return super().forward(x_btc[:, -1]) * (float("nan") if bad else 1.0)
"""


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return write_features(tmp_path_factory.mktemp("features"))


def _run(tmp_path, features, name, *, ranks, **args):
    (tmp_path / "faulty_toy_model.py").write_text(FAULTY)
    model = {"name": "own", "_target_": "faulty_toy_model.Faulty", "args": args}
    settings = trial_settings(ranks=ranks, model=model, steps=30, checkpoint_every=10, log_every=5)
    write_trial(tmp_path / name, features, settings, import_root=str(tmp_path))
    assert run_ranks(tmp_path / name, ranks=ranks) == [0] * ranks, read_log(tmp_path / name)
    return read_artifact(tmp_path / name / "DONE.json", TrialOutcome)


def _faults(outcome):
    """Notes of faults; a busy machine may add stragglers."""
    return [note for note in outcome.notes if not note.startswith("straggler")]


def _read_losses(trial):
    return [
        (line["step"], line["loss"]) for line in map(json.loads, (trial / "metrics.jsonl").read_text().splitlines())
    ]


def _read_weight(trial, outcome):
    folder = trial / outcome.checkpoint
    weight = torch.empty(read_shapes(folder)["model.weight"])
    load_tensors(folder, {"model.weight": weight})
    return weight


@pytest.mark.gloo
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_fault_that_does_not_come_again_leaves_no_trace_in_the_result(tmp_path, features, ranks):
    clean = _run(tmp_path, features, "clean", ranks=ranks)
    faulty = _run(tmp_path, features, "faulty", ranks=ranks, at_call=17)
    assert _faults(faulty)[0].startswith(
        f"the loss became nan at step {18 - ranks}:"
    )  # two ranks try one pass before
    assert _faults(faulty)[0].endswith("transient: it did not come again")
    assert _faults(clean) == []
    assert torch.equal(_read_weight(tmp_path / "faulty", faulty), _read_weight(tmp_path / "clean", clean))
    assert _read_losses(tmp_path / "faulty") == _read_losses(tmp_path / "clean")
    assert "back to step 10, to replay" in read_log(tmp_path / "faulty")


def _find_band(features, settings, *, step, rank):
    """Around the greatest value that the rank sees at that step, so near that nobody sees another in it."""
    data, size, ranks = load_data(features, settings), settings.training.batch_size, settings.parallelism.ranks
    train = data.split.train
    seen = {}
    for number in range(settings.training.steps):
        rows = take_rows(
            number,
            first_row=train.first_sample,
            samples=train.samples,
            batch_size=size,
            seed=derive_seed(settings),
        )
        for each in range(ranks):
            own = rows[rank_slice(size, rank=each, world_size=ranks)]
            seen[number, each] = float(data.features_tc[own, 0].max())
    wanted = seen.pop((step, rank))
    room = min(abs(value - wanted) for value in seen.values()) / 2
    assert room > 0, "two batches have the same greatest value"
    return (wanted - room, wanted + room)


@pytest.mark.gloo
def test_a_batch_that_does_it_again_is_skipped_on_all_ranks_and_named(tmp_path, features):
    settings = trial_settings(ranks=2, steps=30, checkpoint_every=10, log_every=5)
    band = _find_band(features, settings, step=16, rank=1)
    outcome = _run(tmp_path, features, "data", ranks=2, band=band)
    assert outcome.steps == 30
    (note,) = _faults(outcome)
    assert note.endswith("the batch's: skipped")
    log = read_log(tmp_path / "data")
    assert log.index("to replay") < log.index("to skip")
