"""A trial's whole state as tensors, to and from a checkpoint: a resumed run is the same run, to the last bit.

It holds the model, the optimizer, and of every rank its random generators, its place and its meters.
"""

import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from windtunnel.checkpoints.dcp import load_tensors, model_tensors, pack_json, read_shapes, unpack_json
from windtunnel.checkpoints.manifest import CheckpointManifest
from windtunnel.checkpoints.publish import remove_leftovers, set_aside
from windtunnel.checkpoints.verify import Choice, choose_checkpoint
from windtunnel.comm.base import run_on_root
from windtunnel.errors import CheckpointError
from windtunnel.training.mesh import Mesh
from windtunnel.training.meters import Meters, MeterState
from windtunnel.training.recovery import Recovery


@dataclass
class TrainState:
    """What training changes; `step` counts finished optimizer steps, and fixes the sampler and the rate too."""

    model: nn.Module
    """The plain module, not its parallel wrapper."""
    optimizer: torch.optim.Optimizer
    meters: Meters
    recovery: Recovery
    step: int = 0


def state_tensors(state: TrainState, mesh: Mesh) -> dict[str, Tensor]:
    """All of the state that this rank holds, by the names that a checkpoint gives it."""
    return {**model_tensors(state.model), **optimizer_tensors(state), **rank_tensors(state, mesh)}


def find_start(checkpoints_dir: Path, *, origin: CheckpointManifest, mesh: Mesh) -> Choice:
    """The checkpoint to resume from, the same on all ranks; raises CheckpointError when it cannot continue here."""

    def choose() -> Choice:
        remove_leftovers(checkpoints_dir)
        choice = choose_checkpoint(checkpoints_dir)
        if choice.manifest is not None:
            check_origin(choice.manifest, origin)
        for path in choice.passed_over:
            set_aside(path)
        return choice

    return run_on_root(mesh.comm, choose)


def find_newest(checkpoints_dir: Path, *, mesh: Mesh) -> Choice:
    """The newest checkpoint of this very run that verifies, the same on all ranks."""
    return run_on_root(mesh.comm, lambda: choose_checkpoint(checkpoints_dir))


def check_origin(found: CheckpointManifest, origin: CheckpointManifest) -> None:
    """Raise CheckpointError unless a checkpoint is of this trial, these settings, this code and as many ranks."""
    for what in ("trial_id", "settings_sha256", "source_sha256", "world_size"):
        has, needed = getattr(found, what), getattr(origin, what)
        if has != needed:
            raise CheckpointError(
                f"the checkpoint after step {found.step} has {what} {has}, this run {needed}: "
                "it cannot continue exactly: run it as it was begun, or remove the trial's checkpoints to start again"
            )


def load_state(state: TrainState, path: Path, *, step: int, mesh: Mesh) -> None:
    """Fill `state` and this rank's random generators from a verified checkpoint after `step`."""
    shapes = run_on_root(mesh.comm, lambda: read_shapes(path))
    make_optimizer_state(state, shapes)
    mine = {name: torch.empty(shape, dtype=torch.uint8) for name, shape in shapes.items() if name in rank_names(mesh)}
    load_tensors(path, {**model_tensors(state.model), **optimizer_tensors(state), **mine})
    set_rank_tensors(state, mine, mesh)
    state.step = step


def optimizer_tensors(state: TrainState) -> dict[str, Tensor]:
    """The optimizer's state by the parameter's name; its settings are the trial's, and its rate that of the step."""
    return {
        f"optimizer.{name}.{key}": tensor
        for name, parameter in state.model.named_parameters()
        for key, tensor in state.optimizer.state.get(parameter, {}).items()
    }


def make_optimizer_state(state: TrainState, shapes: dict[str, tuple[int, ...]]) -> None:
    """Empty tensors for all that the checkpoint holds of the optimizer, which has made none before its first step."""
    for name, parameter in state.model.named_parameters():
        prefix = f"optimizer.{name}."
        state.optimizer.state[parameter] = {
            held.removeprefix(prefix): _make_room(shape, parameter)
            for held, shape in shapes.items()
            if held.startswith(prefix) and "." not in held.removeprefix(prefix)
        }


def _make_room(shape: tuple[int, ...], parameter: Tensor) -> Tensor:
    """Of one optimizer tensor; one as large as its parameter is divided as that is."""
    if shape == tuple(parameter.shape):
        return torch.empty_like(parameter, dtype=torch.float32, requires_grad=False)
    return torch.empty(shape, dtype=torch.float32, device=parameter.device)


def rank_names(mesh: Mesh) -> tuple[str, str, str]:
    """Names of this rank's own tensors: torch's generator, the device's, and the rest as JSON."""
    return (f"rank-{mesh.rank}.torch", f"rank-{mesh.rank}.device", f"rank-{mesh.rank}.host")


def rank_tensors(state: TrainState, mesh: Mesh) -> dict[str, Tensor]:
    """This rank's random generators and meters."""
    torch_name, device_name, host_name = rank_names(mesh)
    host = {"python": random.getstate(), "numpy": numpy_state(), "meters": asdict(state.meters.state)}
    host |= {"skipped": sorted(state.recovery.skipped), "notes": state.recovery.notes}
    tensors = {torch_name: torch.get_rng_state(), host_name: pack_json(host)}
    if mesh.device.type != "cpu":
        tensors[device_name] = torch.get_device_module(mesh.device).get_rng_state(mesh.device)
    return tensors


def set_rank_tensors(state: TrainState, tensors: dict[str, Tensor], mesh: Mesh) -> None:
    """Put back what `rank_tensors` took."""
    torch_name, device_name, host_name = rank_names(mesh)
    torch.set_rng_state(tensors[torch_name])
    if mesh.device.type != "cpu":
        torch.get_device_module(mesh.device).set_rng_state(tensors[device_name], mesh.device)
    host = unpack_json(tensors[host_name])
    version, words, gauss = host["python"]
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(host["numpy"])
    state.meters.state = MeterState(**host["meters"])
    state.recovery.skipped, state.recovery.notes = set(host["skipped"]), host["notes"]


def numpy_state() -> dict[str, Any]:
    """numpy's global generator, which user code may draw from, as JSON's own types."""
    state: Any = np.random.get_state(legacy=False)
    return {**state, "state": {**state["state"], "key": state["state"]["key"].tolist()}}
