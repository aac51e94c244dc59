"""The stage latency: single-sample inference of each trial's verified final model, on the host that runs it."""

import socket
from pathlib import Path

import torch

from windtunnel.artifacts import hash_json, read_artifact, write_artifact
from windtunnel.device.cpu import read_cpu_name
from windtunnel.errors import SettingsError, WindtunnelError
from windtunnel.identity import hash_user_files
from windtunnel.latency.engines import draw_samples, make_eager
from windtunnel.latency.harness import find_percentiles, time_calls
from windtunnel.ledger.layout import TrialFolder
from windtunnel.models.restore import restore_model
from windtunnel.records.checks import CheckpointReport, Latency, LatencyRow
from windtunnel.records.trial import Sweep, SweepEntry, TrialConfig
from windtunnel.settings.base import parse_settings
from windtunnel.settings.latency import LatencySettings
from windtunnel.settings.study import LatencyStageSettings, TrialSettings
from windtunnel.tasks.table import count_features

_INPUTS = 64
"""Windows taken in turn, so that no call finds its input in the nearest cache."""


def run_latency(settings: LatencyStageSettings, *, sweep: Path, checkpoints: Path, out: Path) -> Latency:
    """Time every trial of `sweep` whose final checkpoint verified in `checkpoints`, and name the others."""
    torch.set_num_threads(settings.latency.threads)
    found = read_artifact(sweep, Sweep)
    report = read_artifact(checkpoints, CheckpointReport)
    skipped = {entry.trial_id: reason for entry in found.entries if (reason := find_obstacle(entry, report))}
    timed = [entry for entry in found.entries if entry.trial_id not in skipped]
    rows = []
    for number, entry in enumerate(timed, 1):
        try:
            row = time_trial(TrialFolder(Path(found.trials_dir) / entry.trial_id), entry, settings.latency)
        except WindtunnelError as error:
            skipped[entry.trial_id] = f"its model could not be restored: {error}"
            continue
        rows.append(row)
        figures = f"p50 {row.p50_us:.0f} us, p99 {row.p99_us:.0f} us, p99.9 {row.p999_us:.0f} us"
        print(f"latency {number} of {len(timed)}: {entry.name}: {figures}", flush=True)
    for trial_id, reason in skipped.items():
        print(f"latency skipped {trial_id}: {reason}", flush=True)
    latency = Latency(study=settings.study, rows=tuple(rows), skipped=skipped)
    write_artifact(out, latency, settings_hash=hash_json(settings))
    return latency


def find_obstacle(entry: SweepEntry, report: CheckpointReport) -> str:
    """Why a trial has no model to time; empty when its final checkpoint verified."""
    if entry.outcome is None:
        return f"it has no model: {entry.verdict}"
    if not entry.outcome.checkpoint:
        return "its program keeps its own checkpoints: there is no model of ours to time"
    final = Path(entry.outcome.checkpoint).name
    for check in report.checks:
        if check.trial_id == entry.trial_id and Path(check.path).name == final:
            return "" if check.verified else f"its final checkpoint did not verify: {check.reason}"
    return "its final checkpoint was not checked: run verify-checkpoints again"


def time_trial(folder: TrialFolder, entry: SweepEntry, settings: LatencySettings) -> LatencyRow:
    """Percentiles of a trial's final model; raises a WindtunnelError when it cannot be restored as it was trained."""
    assert entry.outcome is not None
    config = read_artifact(folder.config, TrialConfig)
    trial = parse_settings(TrialSettings, config.trial.settings, where=str(folder.config))
    check_user_code(config, trial)
    device = choose_device(trial)
    model = restore_model(config, trial, folder.path / entry.outcome.checkpoint)
    engine = make_eager(model, precision=trial.training.precision, device=device)
    n_features = count_features(Path(config.features_manifest))
    inputs = draw_samples(_INPUTS, window=trial.task.window, n_features=n_features)
    found = find_percentiles(time_calls(engine, inputs, samples=settings.samples, discard=settings.discard))
    return LatencyRow(
        trial_id=entry.trial_id,
        name=entry.name,
        p50_us=found.p50_us,
        p99_us=found.p99_us,
        p999_us=found.p999_us,
        samples=settings.samples,
        discarded=settings.discard,
        host=socket.gethostname(),
        device=describe_device(device),
    )


def check_user_code(config: TrialConfig, trial: TrialSettings) -> None:
    """Raise SettingsError unless the user's model is the code that was trained: parameters of one fit no other."""
    target = trial.model.target
    if hash_user_files(target, config.import_root) != config.trial.user_sha256:
        raise SettingsError(f"the code of {target} in {config.import_root} has changed since: plan and sweep again")


def choose_device(trial: TrialSettings) -> torch.device:
    """The accelerator for a trial that trained on one, where this host has any; else the CPU."""
    if trial.cluster.gpus_per_rank and torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        assert found is not None
        return found
    return torch.device("cpu")


def describe_device(device: torch.device) -> str:
    """The device's model."""
    if device.type == "cpu":
        return read_cpu_name()
    return str(torch.get_device_module(device).get_device_name())
