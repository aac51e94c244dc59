"""Trials that run a program instead of our trainer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_trials import LOCAL, make_identity, make_trial
from windtunnel.artifacts import to_plain, write_artifact
from windtunnel.attempt.run import run_attempt
from windtunnel.identity import hash_program
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import AttemptEnd, TrialConfig
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.workload import WorkloadSettings

# Writes lines as docs/command.md says; `{rest}` follows them.
TELLS = """
import json, os, sys
with open(os.environ["WINDTUNNEL_METRICS"], "a") as file:
    def tell(**line):
        file.write(json.dumps(line) + "\\n")
        file.flush()
"""


def make_command(
    *argv: str,
    name: str = "program",
    ranks: int = 1,
    nodes: int = 1,
    cluster: ClusterSettings = LOCAL,
    time_min: int = 5,
    **workload: Any,
) -> PlannedTrial:
    """A trial of `argv`; `workload` are more of its settings."""
    trial = make_trial(name, ranks=ranks, nodes=nodes, cluster=cluster, time_min=time_min)
    settings = {
        "seed": 0,
        "repeat": 0,
        "training": {"steps": 3, "threads_per_rank": 1, "discard_steps": 0},
        "parallelism": {"data": ranks, "nodes": nodes},
        "cluster": trial.settings["cluster"],
        "placement": {"policy": "leaf"},
        "workload": to_plain(WorkloadSettings(kind="command", argv=argv, **workload)),
    }
    return replace(trial, settings=settings)


def write_command(store: Path, trial: PlannedTrial, project: Path) -> TrialFolder:
    """The trial's folder, planned from the files that are in `project` now."""
    workload = WorkloadSettings.model_validate(trial.settings["workload"])
    planned = replace(trial, user_sha256=hash_program(workload, str(project)))
    folder = trial_folder(store, trial.id)
    write_artifact(folder.config, TrialConfig(planned, make_identity(), "", "", str(project)))
    return folder


def run_program(folder: Path, text: str, *argv: str, **settings: Any) -> tuple[AttemptEnd, TrialFolder]:
    """Run a Python program of this `text` as a trial, here and now."""
    (folder / "program.py").write_text(TELLS + "\n".join(f"    {line}" for line in text.splitlines()) + "\n")
    trial = write_command(folder / "store", make_command("python3", "program.py", *argv, **settings), folder)
    return run_attempt(trial.path), trial
