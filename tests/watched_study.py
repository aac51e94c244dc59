"""A study as its stages and supervisors leave it on disk, for those who only look at it."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_driver import write_study
from fake_trials import LOCAL, make_outcome
from windtunnel.artifacts import write_artifact
from windtunnel.launch.roster import Row
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.log import append_event
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import AttemptEnd, Sweep, SweepEntry, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings


def lay_out(root: Path, trials: Sequence[PlannedTrial], *, cluster: ClusterSettings = LOCAL) -> Path:
    """The folder of the study `study` below `root`, planned and not begun."""
    settings = SweepStageSettings(study="study", cluster=cluster, sweep=SweepSettings())
    write_study(root, list(trials), settings)
    for trial in trials:
        trial_folder(root, trial.id).path.mkdir(parents=True, exist_ok=True)
    return root / "study"


def row_of(trial: PlannedTrial) -> Row:
    """The trial as a roster has it."""
    return Row(trial.id, trial.name, trial.steps, trial.shape.nodes, trial.shape.time_min)


def start(root: Path, trial: PlannedTrial, *, attempt: int = 1, job_id: str = "", **details: Any) -> TrialFolder:
    """Events and folders of an attempt under way."""
    folder = trial_folder(root, trial.id)
    folder.attempt(attempt).mkdir(parents=True)
    append_event(folder.path, "submitted", attempt=0, job_id=job_id)
    append_event(folder.path, "started", attempt=attempt, job_id=job_id, hosts=("n0", "n1"), **details)
    return folder


def end(root: Path, trial: PlannedTrial, verdict: Verdict, evidence: str = "", *, attempt: int = 1) -> TrialFolder:
    """All that an attempt leaves."""
    folder = start(root, trial, attempt=attempt)
    if verdict == Verdict.COMPLETED:
        write_artifact(folder.done, make_outcome(trial.id, steps=trial.steps, attempt=attempt))
    code = int(verdict != Verdict.COMPLETED)
    write_artifact(folder.end(attempt), AttemptEnd(attempt, code, verdict, evidence, ("n0", "n1"), "", 1.0))
    append_event(folder.path, "ended", attempt=attempt, verdict=verdict, evidence=evidence, job_id="")
    return folder


def publish(folder: Path, trials: Sequence[PlannedTrial], *, age_s: float = 0.0) -> None:
    """A sweep.json in which all trials are COMPLETED."""
    entries = tuple(
        SweepEntry(trial.id, trial.name, {}, Verdict.COMPLETED, "done", 1, 36.0, make_outcome(trial.id))
        for trial in trials
    )
    path = write_artifact(folder / "sweep.json", Sweep("study", str(folder.parent / "trials"), entries, {}))
    os.utime(path, (time.time() - age_s,) * 2)
