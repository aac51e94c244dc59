"""A trial small enough for tests: made-up features in a real shard, and a real `config.yaml`."""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.artifacts import write_artifact
from windtunnel.records.data import Column, ShardManifest
from windtunnel.records.plan import Identity, PlannedTrial, Shape
from windtunnel.records.trial import TrialConfig, TrialOutcome
from windtunnel.settings.study import TrialSettings
from windtunnel.shards.writer import write_shard
from windtunnel.training.__main__ import main

DAY_NS = 86_400 * 10**9
TCN = {"name": "tcn", "_target_": "windtunnel.models.tcn.TCN", "args": {"channels": 8, "dropout": 0.1}}
TASK = {"window": 8, "horizon": 3}


def write_features(folder: Path, *, rows: int = 400, channels: int = 6) -> Path:
    """The manifest of one feature shard: a random walk, and noise that knows a little of its next step."""
    generator = np.random.default_rng(7)
    returns = 0.01 * generator.standard_normal(rows)
    features = generator.standard_normal((rows, channels), dtype=np.float32)
    features[:-1, 0] += 50 * returns[1:].astype(np.float32)
    features[:3, 1] = np.nan
    columns = {
        "time_ns": np.arange(rows, dtype=np.int64) * DAY_NS,
        "price": 100 * np.exp(np.cumsum(returns)),
        "features": features,
    }
    entry = write_shard(folder / "toy.h5", columns, instrument="toy", compression="zstd", chunk_rows=128)
    names = [Column("time_ns", "int64"), Column("price", "float64")]
    names += [Column(f"f{number}", "float32") for number in range(channels)]
    manifest = ShardManifest("features", "toy", "daily", tuple(names), (entry,), (), "")
    return write_artifact(folder / "MANIFEST.json", manifest)


def trial_settings(
    *, ranks: int = 1, model: dict[str, Any] = TCN, parallelism: dict[str, Any] | None = None, **training: Any
) -> TrialSettings:
    """Settings of a toy trial of `ranks` data-parallel ranks, divided as `parallelism` says besides."""
    return TrialSettings.model_validate(
        {
            "seed": 3,
            "dataset": "toy",
            "features": {"recipe": "daily", "reference": "toy"},
            "model": model,
            "task": TASK,
            "parallelism": {"name": "ddp", "data": ranks, **(parallelism or {})},
            "training": {"steps": 20, "batch_size": 12, "checkpoint_every": 7, "log_every": 5, **training},
            "placement": {},
            "cluster": {"kind": "local", "partition": "local"},
        }
    )


def write_trial(trial_dir: Path, features: Path, settings: TrialSettings, *, import_root: str = "") -> TrialConfig:
    """A trial's folder as the supervisor leaves it for attempt 1."""
    plain = settings.model_dump(mode="json", by_alias=True)
    shape = Shape(1, settings.parallelism.ranks, 1, 0, 1024, 10, "local")
    trial = PlannedTrial(trial_dir.name, "toy", {}, plain, "", shape)
    config = TrialConfig(trial, Identity("data", "source", "torch"), str(features), "", import_root)
    write_artifact(trial_dir / "config.yaml", config)
    return config


def outcome(trial_id: str, steps: int) -> TrialOutcome:
    """An outcome with made-up figures."""
    return TrialOutcome(
        trial_id=trial_id,
        attempt=1,
        steps=steps,
        final_train_loss=1.0,
        evaluations=(),
        samples_per_s=1.0,
        step_s_median=1.0,
        step_s_p90=1.0,
        steps_timed=1,
        steps_discarded=0,
        params=1,
        peak_rss_mib=1.0,
        checkpoint=f"checkpoints/step-{steps:08d}",
        resumed_from_step=None,
        device="CPU",
        rank_hosts=("h",),
        phases_s={},
    )


def start_ranks(trial_dir: Path, *, ranks: int, attempt: int = 1) -> list[ForkServerProcess]:
    """The ranks of an attempt as child processes, each with its output in a file as the supervisor keeps it.

    They are forked from a server that has imported torch already: its import takes longer than a toy trial.
    """
    (trial_dir / "attempts" / str(attempt)).mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["windtunnel.training.run", "torch._dynamo"])
    children = [context.Process(target=_run_rank, args=(trial_dir, attempt, rank, ranks)) for rank in range(ranks)]
    for child in children:
        child.start()
    return children


def run_ranks(trial_dir: Path, *, ranks: int, attempt: int = 1) -> list[int | None]:
    """Exit codes of an attempt's ranks, run to their end."""
    children = start_ranks(trial_dir, ranks=ranks, attempt=attempt)
    for child in children:
        child.join(timeout=120)
    return [child.exitcode for child in children]


def read_log(trial_dir: Path, *, rank: int = 0, attempt: int = 1) -> str:
    """What a rank printed."""
    return (trial_dir / "attempts" / str(attempt) / f"rank-{rank}.log").read_text()


def _run_rank(trial_dir: Path, attempt: int, rank: int, ranks: int) -> None:
    log = os.open(trial_dir / "attempts" / str(attempt) / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), GLOO_SOCKET_IFNAME="lo")
    sys.exit(main(["--trial-dir", str(trial_dir), "--attempt", str(attempt)]))
