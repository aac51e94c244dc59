"""Trials whose ranks are a small script: supervisors and drivers are tested with real processes, without training."""

import sys
from pathlib import Path

from windtunnel.artifacts import write_artifact
from windtunnel.identity import hash_sources
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.records.plan import Identity, PlannedTrial, Shape
from windtunnel.records.trial import Evaluation, TrialConfig, TrialOutcome
from windtunnel.settings.cluster import ClusterSettings

RANK = (sys.executable, str(Path(__file__).parent / "fake_rank.py"))
SUPERVISOR = (sys.executable, str(Path(__file__).parent / "fake_supervisor.py"))
LOCAL = ClusterSettings(kind="local", partition="local")


def make_identity() -> Identity:
    """The identity of this code, with data made up."""
    import importlib.metadata

    return Identity("d" * 64, hash_sources(), importlib.metadata.version("torch"))


def make_trial(
    name: str = "tcn",
    *,
    behaviour: str = "train",
    steps: int = 3,
    ranks: int = 1,
    cluster: ClusterSettings = LOCAL,
    nodes: int = 1,
    step_s: float = 0.0,
    time_min: int = 5,
) -> PlannedTrial:
    """A trial whose ranks do what `behaviour` says; see `fake_rank.py`."""
    settings = {
        "training": {"steps": steps, "threads_per_rank": 1},
        "cluster": cluster.model_dump(mode="json"),
        "placement": {"policy": "leaf"},
        "model": {"name": "tcn", "target": "windtunnel.models.tcn.TCN", "args": {}},
        "fake": {"behaviour": behaviour, "step_s": step_s},
    }
    shape = Shape(nodes, ranks // nodes, 1, 0, 64, time_min, cluster.partition)
    return PlannedTrial(f"{name:0>16}", name, {"model": name}, settings, "", shape)


def write_trial(
    store: Path, trial: PlannedTrial, *, identity: Identity | None = None, lost_retries: int = 3
) -> TrialFolder:
    """The trial's folder with its config.yaml, as a driver leaves it before it submits."""
    folder = trial_folder(store, trial.id)
    config = TrialConfig(
        trial, identity or make_identity(), str(store / "MANIFEST.json"), "", "", lost_retries=lost_retries
    )
    write_artifact(folder.config, config)
    return folder


def make_outcome(trial_id: str, *, steps: int = 3, attempt: int = 1, resumed: int | None = None) -> TrialOutcome:
    """An outcome such as training writes."""
    return TrialOutcome(
        trial_id=trial_id,
        attempt=attempt,
        steps=steps,
        final_train_loss=0.7,
        evaluations=(Evaluation("validation", 10, 0.69, {}),),
        samples_per_s=1234.0,
        step_s_median=0.01,
        step_s_p90=0.02,
        steps_timed=steps,
        steps_discarded=0,
        params=10,
        peak_rss_mib=100.0,
        checkpoint=f"checkpoints/step-{steps:08d}",
        resumed_from_step=resumed,
        device="cpu",
        rank_hosts=("here",),
        phases_s={"train": 0.1},
    )
