"""Made-up studies of the size that is asked for: their plans, and what trials and drivers leave in a store."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.sweep_bed import PARTITION
from windtunnel.artifacts import Record, hash_json, to_plain, write_artifact
from windtunnel.identity import read_identity
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import Holder
from windtunnel.ledger.log import LEDGER, Event
from windtunnel.records.data import Column, ShardManifest
from windtunnel.records.plan import Plan, PlannedTrial, Shape
from windtunnel.records.trial import Evaluation, StepRecord, Sweep, SweepEntry, TrialConfig, TrialOutcome, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings, TrialSettings
from windtunnel.settings.sweep import SweepSettings

STUDY = "made_up"
STEPS = 1000
_TIME_MIN = 60
_MEMORY_MIB = 64
_MODEL = {"name": "tcn", "_target_": "windtunnel.models.tcn.TCN", "args": {"channels": 32, "layers": 4}}
_TASK = {"name": "direction_volatility", "window": 64, "horizon": 5}
_TRAINING = {"steps": STEPS, "batch_size": 64, "checkpoint_every": 50, "log_every": 10}


def make_cluster() -> ClusterSettings:
    """Small jobs on the testbed."""
    return ClusterSettings(kind="slurm", partition=PARTITION, time=_TIME_MIN, memory=_MEMORY_MIB)


def make_settings() -> SweepStageSettings:
    """The sweep with its own defaults."""
    return SweepStageSettings(study=STUDY, cluster=make_cluster(), sweep=SweepSettings())


def make_trials(count: int, *, shapes: int = 1) -> tuple[PlannedTrial, ...]:
    """Trials of the quickstart study's kind; they take the shapes in turn, which differ in their time limit."""
    shape = Shape(
        nodes=1,
        ranks_per_node=1,
        cpus_per_rank=1,
        gpus_per_node=0,
        mem_mib=_MEMORY_MIB,
        time_min=_TIME_MIN,
        partition=PARTITION,
    )
    return tuple(
        PlannedTrial(
            id=hash_json({"seed": index})[:16],
            name=f"tcn seed {index}",
            choices={"model": "tcn", "seed": str(index)},
            settings={**_render_settings(), "seed": index},
            user_sha256="",
            shape=replace(shape, time_min=_TIME_MIN + index % shapes),
        )
        for index in range(count)
    )


@cache
def _render_settings() -> dict[str, Any]:
    plain = {
        "seed": 0,
        "dataset": "made_up",
        "features": {"recipe": "daily", "reference": "made_up"},
        "model": _MODEL,
        "task": _TASK,
        "parallelism": {"name": "single"},
        "training": _TRAINING,
        "placement": {},
        "cluster": make_cluster().model_dump(mode="json"),
    }
    return TrialSettings.model_validate(plain).model_dump(mode="json", by_alias=True)


def write_study(root: Path, trials: Sequence[PlannedTrial]) -> Plan:
    """A project's `results` as the stages before the sweep leave them."""
    columns = (Column("time_ns", "int64"), Column("price", "float64"))
    write_artifact(features_file(root), ShardManifest("features", STUDY, "daily", columns, (), (), ""))
    plan = Plan(STUDY, read_identity(features_file(root)), tuple(trials), ())
    write_artifact(plan_file(root), plan)
    return plan


def features_file(root: Path) -> Path:
    return root / "features" / "MANIFEST.json"


def plan_file(root: Path) -> Path:
    return root / STUDY / "plan.json"


def published_file(root: Path) -> Path:
    return root / STUDY / "sweep.json"


def write_running(root: Path, plan: Plan, jobs: Mapping[str, str]) -> None:
    """The trials' folders as supervisors on other hosts leave them while their ranks train; `jobs` are the ids."""
    for index, trial in enumerate(plan.trials):
        folder = trial_folder(root, trial.id)
        folder.attempt(1).mkdir(parents=True)
        folder.lease.mkdir()
        (folder.lease / "1").write_text(json.dumps(asdict(_make_holder(jobs[trial.id]))) + "\n")
        append_metrics(folder, step=10)
        _write_ledger(folder, index, jobs[trial.id])


def append_metrics(folder: TrialFolder, *, step: int) -> None:
    """What rank 0 adds to its metrics."""
    record = StepRecord(step, 1, 0.7, 1e-3, 5000.0, 0.0128, float(step))
    with folder.metrics.open("a") as file:
        file.write(json.dumps(asdict(record)) + "\n")


def write_finished(root: Path, plan: Plan) -> None:
    """The trials' folders as one attempt of each leaves them, COMPLETED."""
    for index, trial in enumerate(plan.trials):
        folder = trial_folder(root, trial.id)
        folder.attempt(1).mkdir(parents=True)
        _write_plainly(folder.config, TrialConfig(trial, plan.identity, str(features_file(root)), "", ""))
        append_metrics(folder, step=STEPS)
        _write_plainly(folder.done, make_outcome(trial.id))
        _write_ledger(folder, index, f"1_{index}", ended=True)


def write_published(root: Path, plan: Plan) -> None:
    """The `sweep.json` of a study whose trials are all COMPLETED."""
    entries = tuple(
        SweepEntry(
            trial_id=trial.id,
            name=trial.name,
            choices=trial.choices,
            verdict=Verdict.COMPLETED,
            evidence=f"DONE.json of attempt 1: {STEPS} steps",
            attempts=1,
            node_seconds=4.0,
            outcome=make_outcome(trial.id),
        )
        for trial in plan.trials
    )
    _write_plainly(published_file(root), Sweep(STUDY, str(root / "trials"), entries, to_plain(make_settings())))


def make_outcome(trial_id: str) -> TrialOutcome:
    """An outcome such as training writes."""
    evaluations = tuple(Evaluation(split, 600, 0.69, {"accuracy": 0.52}) for split in ("validation", "test"))
    return TrialOutcome(
        trial_id=trial_id,
        attempt=1,
        steps=STEPS,
        final_train_loss=0.7,
        evaluations=evaluations,
        samples_per_s=5000.0,
        step_s_median=0.0128,
        step_s_p90=0.02,
        steps_timed=STEPS,
        steps_discarded=0,
        params=12345,
        peak_rss_mib=300.0,
        checkpoint=f"checkpoints/step-{STEPS:08d}",
        resumed_from_step=None,
        device="cpu",
        rank_hosts=("n0",),
        phases_s={"setup": 1.0, "train": 3.0},
    )


def _write_ledger(folder: TrialFolder, index: int, job_id: str, *, ended: bool = False) -> None:
    name = f"windtunnel-{STUDY}-1"
    told = [
        _event("submitting", 0, submission=name, index=index),
        _event("submitted", 0, submission=name, job_id=job_id),
        _event("started", 1, job_id=job_id, hosts=["n0"], granted=["n0"]),
    ]
    if ended:
        told.append(_event("ended", 1, job_id=job_id, verdict="COMPLETED", evidence=f"{STEPS} steps"))
    (folder.path / LEDGER).write_text("".join(json.dumps(asdict(event)) + "\n" for event in told))


def _event(kind: str, attempt: int, **details: Any) -> Event:
    return Event(kind, attempt, time.time(), "n0" if attempt else "login", 1, details)


def _make_holder(job_id: str) -> Holder:
    return Holder("n0", 1, "another boot", time.time(), job_id=job_id)


def _write_plainly(path: Path, record: Record) -> None:
    """An artifact without the fsyncs of `write_artifact`, of which ten thousand would take minutes."""
    document = {"schema": record.SCHEMA, "settings_hash": "", "provenance": {}, "content": to_plain(record)}
    path.write_text(json.dumps(document, indent=1) + "\n")
