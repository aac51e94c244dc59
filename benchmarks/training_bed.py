"""What the training benchmark trains: made-up features in a real shard, our models, and our own loop over them."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from windtunnel.artifacts import write_artifact
from windtunnel.comm.single import SingleComm
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.data import Column, ShardManifest
from windtunnel.records.meter import RankPhases
from windtunnel.records.plan import Identity, PlannedTrial, Shape
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.study import TrialSettings
from windtunnel.shards.writer import write_shard
from windtunnel.tasks.find import find_task
from windtunnel.training.context import Run
from windtunnel.training.data import load_data
from windtunnel.training.loop import Loop
from windtunnel.training.mesh import Mesh
from windtunnel.training.precision import set_arithmetic
from windtunnel.training.resume import TrainState
from windtunnel.training.run import set_up
from windtunnel.training.stop import StopWish

WINDOW, CHANNELS, ROWS = 64, 16, 4000
LEAST_STEP_S = 0.01
"""Steps shorter than this are not what a loop's overhead is judged by."""
MODELS: dict[str, dict[str, Any]] = {
    "tcn": {"name": "tcn", "_target_": "windtunnel.models.tcn.TCN", "args": {"channels": 48}},
    "transformer": {
        "name": "transformer",
        "_target_": "windtunnel.models.transformer.CausalTransformer",
        "args": {"width": 64, "heads": 4, "layers": 2},
    },
}
_DAY_NS = 86_400 * 10**9


@dataclass
class Bed:
    """A run of ours that goes on by a few steps at a time."""

    run: Run
    state: TrainState
    wrapped: torch.nn.Module

    def train(self, steps: int) -> RankPhases:
        """Take so many steps in our own loop, which ends with a checkpoint; where their time went."""
        training = self.run.settings.training.model_copy(update={"steps": self.state.step + steps})
        run = replace(self.run, settings=self.run.settings.model_copy(update={"training": training}))
        set_arithmetic(training)
        with redirect_stdout(io.StringIO()):  # the lines are made all the same
            Loop(run, self.state, self.wrapped, StopWish()).train()
        return self.state.meters.phases


@contextmanager
def open_bed(model: str, *, batch_size: int, log_every: int, discard_steps: int) -> Iterator[Bed]:
    """One rank in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="windtunnel-training-") as folder:
        settings = make_settings(model, batch_size=batch_size, log_every=log_every, discard_steps=discard_steps)
        run = _open_run(Path(folder), settings)
        set_arithmetic(settings.training)
        yield Bed(run, *set_up(run))


def make_settings(model: str, *, batch_size: int, log_every: int, discard_steps: int) -> TrialSettings:
    """Of one rank with one thread; no checkpoint comes before the last one."""
    return TrialSettings.model_validate(
        {
            "seed": 1,
            "dataset": "made-up",
            "features": {"recipe": "daily", "reference": "made-up"},
            "model": MODELS[model],
            "task": {"window": WINDOW, "horizon": 3},
            "parallelism": {"name": "single"},
            "training": {
                "batch_size": batch_size,
                "log_every": log_every,
                "checkpoint_every": 10**9,
                "discard_steps": discard_steps,
                "warmup_steps": 0,
            },
            "placement": {},
            "cluster": {"kind": "local", "partition": "local"},
        }
    )


def write_features(folder: Path) -> Path:
    """The manifest of one feature shard: a random walk, and noise."""
    generator = np.random.default_rng(7)
    columns = {
        "time_ns": np.arange(ROWS, dtype=np.int64) * _DAY_NS,
        "price": 100 * np.exp(np.cumsum(0.01 * generator.standard_normal(ROWS))),
        "features": generator.standard_normal((ROWS, CHANNELS), dtype=np.float32),
    }
    entry = write_shard(folder / "made-up.h5", columns, instrument="made-up", compression="zstd", chunk_rows=512)
    names = [Column("time_ns", "int64"), Column("price", "float64")]
    names += [Column(f"f{number}", "float32") for number in range(CHANNELS)]
    manifest = ShardManifest("features", "made-up", "daily", tuple(names), (entry,), (), "")
    return write_artifact(folder / "MANIFEST.json", manifest)


def _open_run(root: Path, settings: TrialSettings) -> Run:
    features = root / "features"
    features.mkdir()
    manifest = write_features(features)
    folder = TrialFolder(root / "trial")
    folder.attempt(1).mkdir(parents=True)
    plain = settings.model_dump(mode="json", by_alias=True)
    trial = PlannedTrial("trial", "made-up", {}, plain, "", Shape(1, 1, 1, 0, 1024, 10, "local"))
    return Run(
        folder=folder,
        attempt=1,
        config=TrialConfig(trial, Identity("data", "source", "torch"), str(manifest), "", ""),
        settings=settings,
        task=find_task(settings.task.name),
        mesh=Mesh(0, 1, torch.device("cpu"), SingleComm(), None),
        data=load_data(manifest, settings),
        seed=1,
        hosts=("here",),
    )
