import random
import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from toy_trial import trial_settings
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest, checkpoint_name, list_checkpoints
from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.comm.single import SingleComm
from windtunnel.errors import CheckpointError, StorageError
from windtunnel.training.mesh import Mesh
from windtunnel.training.meters import Meters
from windtunnel.training.precision import derive_seed, seed_generators
from windtunnel.training.recovery import Recovery
from windtunnel.training.resume import TrainState, check_origin, find_start, load_state, state_tensors
from windtunnel.training.step import make_optimizer

MESH = Mesh(0, 1, torch.device("cpu"), SingleComm(), None)
ORIGIN = CheckpointManifest("trial", 0, 1, "settings", "source")
SETTINGS = trial_settings().training


def _state():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return TrainState(model, make_optimizer(model, SETTINGS), Meters(MESH, discard_steps=1), Recovery(2))


def _train(state, steps):
    """Steps that draw from every generator there is."""
    for _ in range(steps):
        state.meters.start_step()
        x = torch.from_numpy(np.random.standard_normal((5, 3))).float() * random.random() + random.gauss(0, 1)
        loss = state.model(x).square().mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        state.step += 1
        state.meters.stop_step(loss, step=state.step)
        state.meters.flush()


def _save(state, folder, keep=2):
    saver = Saver(folder, comm=MESH.comm, fence=Fence(), retention=Retention(keep))
    saver.save(state_tensors(state, MESH), replace(ORIGIN, step=state.step))
    saver.wait()
    return folder / checkpoint_name(state.step)


def test_a_loaded_state_goes_on_as_the_saved_one_would_have(tmp_path):
    torch.set_num_threads(1)
    first = _state()
    _train(first, 3)
    path = _save(first, tmp_path)
    _train(first, 4)
    torch.manual_seed(99)
    random.seed(99)
    np.random.seed(99)
    second = _state()
    load_state(second, path, step=3, mesh=MESH)
    assert second.step == 3
    _train(second, 4)
    expected = first.model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in second.model.state_dict().items())
    assert second.meters.state.pending_losses == first.meters.state.pending_losses
    assert len(second.meters.state.step_times_s) == 5  # 7 steps, each attempt's first one left out


def test_checkpoints_past_the_kept_ones_are_let_go(tmp_path):
    state = _state()
    for _ in range(4):
        _train(state, 1)
        _save(state, tmp_path, keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-00000004", "step-00000003"]


def test_a_start_clears_what_a_killed_writer_left(tmp_path):
    state = _state()
    _train(state, 1)
    _save(state, tmp_path)
    (tmp_path / ".tmp-dead").mkdir()
    assert find_start(tmp_path, origin=ORIGIN, mesh=MESH).manifest.step == 1
    assert not (tmp_path / ".tmp-dead").exists()


def test_a_checkpoint_that_finds_no_room_leaves_nothing_behind(tmp_path):
    state = _state()
    _train(state, 1)
    _save(state, tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        _train(state, 1)
        with pytest.raises(StorageError, match="File too large"):
            _save(state, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


@pytest.mark.parametrize(
    "change", [{"trial_id": "b"}, {"settings_sha256": "b"}, {"source_sha256": "b"}, {"world_size": 2}]
)
def test_a_checkpoint_from_elsewhere_is_refused_with_what_differs(change):
    (what,) = change
    with pytest.raises(CheckpointError, match=f"has {what} .*, this run"):
        check_origin(ORIGIN, replace(ORIGIN, **change))


def test_a_checkpoint_of_another_world_is_not_started_from(tmp_path):
    state = _state()
    _train(state, 1)
    _save(state, tmp_path)
    with pytest.raises(CheckpointError, match="has world_size 1, this run 2"):
        find_start(tmp_path, origin=replace(ORIGIN, world_size=2), mesh=MESH)


def test_repeats_of_one_combination_have_seeds_of_their_own():
    settings = trial_settings()
    seeds = {derive_seed(settings.model_copy(update={"repeat": repeat})) for repeat in range(5)}
    assert len(seeds) == 5
    assert derive_seed(settings) == derive_seed(trial_settings())


def test_all_generators_start_from_the_trials_seed_so_that_a_run_begun_again_is_the_same():
    drawn = []
    for _ in range(2):
        seed_generators(2**40 + 7)
        drawn.append((random.random(), np.random.random(), float(torch.rand(1))))
    assert drawn[0] == drawn[1]
