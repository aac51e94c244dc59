"""What a rank knows of its run and does not change: the order, the mesh, the data, and how long each phase took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest
from windtunnel.identity import hash_settings
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.study import TrialSettings
from windtunnel.tasks.find import Task
from windtunnel.training.data import TrialData, rank_slice, take_rows
from windtunnel.training.mesh import Mesh
from windtunnel.training.timeline import Timeline
from windtunnel.training.watch import Position


@dataclass(frozen=True)
class Run:
    """One rank's run of one attempt."""

    folder: TrialFolder
    attempt: int
    config: TrialConfig
    settings: TrialSettings
    task: Task
    mesh: Mesh
    data: TrialData
    seed: int
    hosts: tuple[str, ...] = ()
    """Of each rank."""
    fence: Fence = field(default_factory=Fence)
    position: Position = field(default_factory=Position)
    timeline: Timeline = field(default_factory=Timeline)
    phases_s: dict[str, float] = field(default_factory=dict)

    @property
    def checkpoints_dir(self) -> Path:
        """Where this trial's checkpoints lie."""
        return self.folder.path / "checkpoints"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the wall time of what is inside to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + time.perf_counter() - started

    def origin(self, step: int, *, train_loss: float | None = None) -> CheckpointManifest:
        """What a checkpoint of this run after `step` says of where it comes from; its files are not yet listed."""
        return CheckpointManifest(
            trial_id=self.config.trial.id,
            step=step,
            world_size=self.mesh.world_size,
            settings_sha256=hash_settings(self.settings),
            source_sha256=self.config.identity.source_sha256,
            layout={axis: getattr(self.settings.parallelism, axis) for axis in ("data", "shard", "tensor")},
            train_loss=train_loss,
        )

    def step_rows(self, step: int) -> NDArray[np.int64]:
        """Last input rows of this rank's part of the global batch of `step`, counted from 0."""
        stretch = self.data.split.train
        batch_size = self.settings.training.batch_size
        rows = take_rows(
            step, first_row=stretch.first_sample, samples=stretch.samples, batch_size=batch_size, seed=self.seed
        )
        return rows[rank_slice(batch_size, rank=self.mesh.data_rank, world_size=self.mesh.data_size)]

    def report(self, line: str) -> None:
        """Print a line, once for all ranks."""
        if self.mesh.is_root:
            print(line, flush=True)
