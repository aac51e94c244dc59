"""Equal results: each layout takes the steps of one rank on the same global batch."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from toy_trial import run_ranks, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.checkpoints.dcp import load_tensors, read_shapes
from windtunnel.records.trial import TrialOutcome

# Without dropout, which ranks draw apart.
MODELS: dict[str, dict[str, Any]] = {
    "tcn": {"name": "tcn", "_target_": "windtunnel.models.tcn.TCN", "args": {"channels": 8}},
    "transformer": {
        "name": "transformer",
        "_target_": "windtunnel.models.transformer.CausalTransformer",
        "args": {"width": 16, "heads": 4},
    },
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "ddp1": {"data": 1},
    "ddp2": {"data": 2},
    "fsdp2": {"data": 2, "shard": 2},
    "fsdp2-kept": {"data": 2, "shard": 2, "reshard": False},
    "ddp4": {"data": 4},
    "fsdp4": {"data": 4, "shard": 4},
    "hsdp4": {"data": 4, "shard": 2},
    "tp2": {"data": 1, "tensor": 2},
    "tp4": {"data": 1, "tensor": 4},
    "tp2-ddp2": {"data": 2, "tensor": 2},
    "tp2-fsdp2": {"data": 2, "shard": 2, "tensor": 2},
}
STEPS, TOLERANCE = 50, 1e-5


def _train(trial_dir: Path, features: Path, model: str, layout: dict[str, Any], **training: Any) -> Path:
    ranks = layout["data"] * layout.get("tensor", 1)
    settings = trial_settings(model=MODELS[model], parallelism=layout, steps=STEPS, **training)
    write_trial(trial_dir, features, settings)
    assert run_ranks(trial_dir, ranks=ranks) == [0] * ranks
    return trial_dir


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_features(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="module", params=MODELS)
def alone(request, tmp_path_factory, features):
    """A model and its trial on one rank; a batch of 13 divides over no ranks equally."""
    folder = tmp_path_factory.mktemp("alone") / "t"
    return request.param, _train(folder, features, request.param, {"data": 1}, batch_size=13, log_every=1)


def _read_losses(trial_dir: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (trial_dir / "metrics.jsonl").read_text().splitlines()]


def _read_state(trial_dir: Path) -> dict[str, torch.Tensor]:
    """Weights, and the optimizer's running mean of gradients, which are linear in them."""
    folder = trial_dir / read_artifact(trial_dir / "DONE.json", TrialOutcome).checkpoint
    shapes = read_shapes(folder)
    names = [name for name in shapes if name.startswith("model.") or name.endswith(".exp_avg")]
    tensors = {name: torch.empty(shapes[name]) for name in names}
    load_tensors(folder, tensors)
    return tensors


@pytest.mark.gloo
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "ddp1"])
def test_a_layout_has_the_losses_and_gradients_of_one_rank(tmp_path, features, alone, layout):
    model, reference = alone
    if model == "tcn" and "tensor" in LAYOUTS[layout]:
        pytest.skip("the TCN has no tensor-parallel form: the plan refuses it")
    _check_equal(
        _train(tmp_path / "t", features, model, LAYOUTS[layout], batch_size=13, log_every=1), reference, layout
    )


@pytest.mark.gloo
@pytest.mark.parametrize("layout", ["ddp1", "ddp2", "fsdp2"])
def test_accumulated_gradients_are_those_of_the_whole_batch(tmp_path, features, alone, layout):
    model, reference = alone
    options = {"batch_size": 13, "log_every": 1, "accumulate": 3}
    _check_equal(_train(tmp_path / "t", features, model, LAYOUTS[layout], **options), reference, layout)


def _check_equal(trial: Path, reference: Path, layout: str) -> None:
    assert len(_read_losses(trial)) == STEPS
    assert _read_losses(trial) == pytest.approx(_read_losses(reference), abs=TOLERANCE)
    expected, found = _read_state(reference), _read_state(trial)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        if name.endswith(".exp_avg"):
            assert torch.allclose(found[name], tensor, rtol=0, atol=TOLERANCE), name
    one, several = (read_artifact(folder / "DONE.json", TrialOutcome) for folder in (reference, trial))
    assert several.params == one.params
    for left, right in zip(one.evaluations, several.evaluations, strict=True):
        assert right.loss == pytest.approx(left.loss, abs=10 * TOLERANCE)
    share = LAYOUTS[layout].get("shard", 1)
    (whole,) = one.rank_memory
    held = [memory.optimizer_bytes for memory in several.rank_memory]
    assert max(held) < 1.3 * whole.optimizer_bytes / share
