import json
import os
import random
import shutil
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch

from toy_trial import run_ranks, start_ranks, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.checkpoints.dcp import load_tensors, read_shapes
from windtunnel.checkpoints.manifest import list_checkpoints, read_manifest
from windtunnel.records.trial import STOPPED_CODE, TrialOutcome

STEPS = 240


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return write_features(tmp_path_factory.mktemp("features"))


def _read_losses(trial_dir: Path) -> list[tuple[int, float, float]]:
    lines = [json.loads(line) for line in (trial_dir / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"], line["learning_rate"]) for line in lines]


def _read_outcome(trial_dir: Path) -> TrialOutcome:
    return read_artifact(trial_dir / "DONE.json", TrialOutcome)


def _read_tensors(trial_dir: Path) -> dict[str, torch.Tensor]:
    folder = trial_dir / _read_outcome(trial_dir).checkpoint
    shapes = read_shapes(folder)
    names = [name for name in shapes if not name.endswith(".host")]  # that one holds times
    kinds = {name: torch.uint8 if name.startswith("rank-") else torch.float32 for name in names}
    tensors = {name: torch.empty(shapes[name], dtype=kinds[name]) for name in names}
    load_tensors(folder, tensors)
    return tensors


def _wait_for_line(children: list[BaseProcess], trial_dir: Path, line: int) -> None:
    metrics = trial_dir / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and all(child.is_alive() for child in children):
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= line:
            return
        time.sleep(0.002)


def _kill_at_line(children: list[BaseProcess], trial_dir: Path, line: int) -> None:
    _wait_for_line(children, trial_dir, line)
    for child in children:  # all of them before any is waited for, or one would fail for want of another
        child.kill()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [-signal.SIGKILL] * len(children), (
        "it ended before it was killed"
    )


@pytest.mark.gloo
@pytest.mark.parametrize(("ranks", "shard"), [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_a_run_killed_at_a_random_step_and_resumed_is_the_same_run_to_the_last_bit(tmp_path, features, ranks, shard):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = trial_settings(ranks=ranks, parallelism={"shard": shard}, steps=STEPS, checkpoint_every=17)
    for trial_dir in (whole, killed):
        write_trial(trial_dir, features, settings)
    assert run_ranks(whole, ranks=ranks) == [0] * ranks
    line = random.Random(os.urandom(8)).randrange(6, 18)
    _kill_at_line(start_ranks(killed, ranks=ranks), killed, line)
    assert run_ranks(killed, ranks=ranks, attempt=2) == [0] * ranks
    resumed_from = _read_outcome(killed).resumed_from_step
    assert resumed_from is not None, f"killed at line {line}, it began anew"
    assert resumed_from >= 17
    assert _read_losses(killed) == _read_losses(whole)
    assert _read_outcome(killed).evaluations == _read_outcome(whole).evaluations
    tensors = _read_tensors(whole)
    assert {name for name in tensors if name.startswith("optimizer.")}
    for name, tensor in _read_tensors(killed).items():
        assert torch.equal(tensor, tensors[name]), name


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("parallelism", "layers"),
    [({"data": 4}, 6), ({"data": 2, "shard": 2, "tensor": 2}, 2)],
    ids=["ddp4", "tp2-fsdp2"],
)
def test_several_ranks_sum_gradients_in_the_same_order_before_and_after_a_resume(
    tmp_path, features, parallelism, layers
):
    # From three ranks on, the order of a sum shows in its last bit.
    model = {"name": "t", "_target_": "windtunnel.models.transformer.CausalTransformer", "args": {"layers": layers}}
    trial = tmp_path / "t"
    write_trial(
        trial,
        features,
        trial_settings(
            parallelism=parallelism, batch_size=13, steps=24, log_every=1, keep_checkpoints=9, model=model
        ),
    )
    assert run_ranks(trial, ranks=4) == [0] * 4
    losses = _read_losses(trial)
    (trial / "DONE.json").unlink()
    for later in ("step-00000024", "step-00000021"):
        shutil.rmtree(trial / "checkpoints" / later)
    assert run_ranks(trial, ranks=4, attempt=2) == [0] * 4
    assert _read_outcome(trial).resumed_from_step == 14
    assert _read_losses(trial) == losses


@pytest.mark.gloo
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_signal_to_one_rank_ends_all_after_the_same_step_with_a_checkpoint_of_it(tmp_path, features, ranks):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    settings = trial_settings(ranks=ranks, steps=STEPS, checkpoint_every=STEPS)
    for trial_dir in (whole, stopped):
        write_trial(trial_dir, features, settings)
    assert run_ranks(whole, ranks=ranks) == [0] * ranks
    children = start_ranks(stopped, ranks=ranks)
    _wait_for_line(children, stopped, 3)
    os.kill(children[-1].pid or 0, signal.SIGTERM)
    for child in children:
        child.join(timeout=60)
    assert [child.exitcode for child in children] == [STOPPED_CODE] * ranks
    (checkpoint,) = list_checkpoints(stopped / "checkpoints")
    assert run_ranks(stopped, ranks=ranks, attempt=2) == [0] * ranks
    assert _read_outcome(stopped).resumed_from_step == read_manifest(checkpoint).step
    assert _read_losses(stopped) == _read_losses(whole)
    tensors = _read_tensors(whole)
    for name, tensor in _read_tensors(stopped).items():
        assert torch.equal(tensor, tensors[name]), name
