"""All that a report is made of, read from the files that other stages left; what is not there is named, not fatal."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from windtunnel.artifacts import Record, read_artifact, read_document
from windtunnel.errors import ArtifactError, InputFileError, StudyError
from windtunnel.ledger.facts import read_ends
from windtunnel.ledger.goodput import summarise_goodput
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers
from windtunnel.ledger.log import read_events
from windtunnel.ledger.traces import read_traces
from windtunnel.records.checks import CheckpointReport, Latency
from windtunnel.records.cluster import Collectives, DeviceFacts, Models, Topology
from windtunnel.records.data import ShardManifest
from windtunnel.records.goodput import Goodput
from windtunnel.records.plan import Plan
from windtunnel.records.trial import PARTIAL_SWEEP, AttemptEnd, StepRecord, Sweep
from windtunnel.report.benchmarks import StageTime, read_stage_times

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Inputs:
    """Paths of the artifacts; None for one that the caller does not have."""

    plan: Path
    sweep: Path
    checkpoints: Path | None = None
    latency: Path | None = None
    models: Path | None = None
    topology: Path | None = None
    collectives: Path | None = None
    device: Path | None = None
    benchmarks: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Missing:
    """An input that the page has to do without, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class Stamp:
    """Where an artifact came from."""

    artifact: str
    schema: str
    settings_hash: str
    provenance: dict[str, str]


@dataclass(frozen=True)
class Collected:
    """All that was found; an absent record is None and has its line in `missing`."""

    study: str
    plan: Plan | None
    sweep: Sweep | None
    checkpoints: CheckpointReport | None
    latency: Latency | None
    models: Models | None
    topology: Topology | None
    collectives: Collectives | None
    device: DeviceFacts | None
    data: ShardManifest | None
    steps: dict[str, tuple[StepRecord, ...]]
    """By trial id, in the order written; a resumed trial repeats steps."""
    attempts: dict[str, tuple[AttemptEnd, ...]]
    stages: tuple[StageTime, ...]
    stamps: tuple[Stamp, ...]
    missing: tuple[Missing, ...]
    goodputs: dict[str, Goodput] = field(default_factory=dict)
    """By trial id, of those that were begun."""


def read_inputs(study: str, inputs: Inputs) -> Collected:
    """Read what is there.

    A damaged plan or sweep raises ArtifactError, another study's StudyError; any other file that does not
    read becomes a line of `missing`.
    """
    reader = _Reader()
    plan = reader.read("plan", inputs.plan, Plan, needed=True)
    sweep = reader.read("sweep", _find_sweep(inputs.sweep), Sweep, needed=True)
    _refuse_other_study(study, plan, sweep)
    trials_dir = Path(sweep.trials_dir) if sweep else None
    ids = [entry.trial_id for entry in sweep.entries] if sweep else []
    attempts = {i: _read_attempts(trials_dir / i) for i in ids if trials_dir}
    return Collected(
        study=study,
        plan=plan,
        sweep=sweep,
        checkpoints=reader.read("checkpoints", inputs.checkpoints, CheckpointReport),
        latency=reader.read("latency", inputs.latency, Latency),
        models=reader.read("models", inputs.models, Models),
        topology=reader.read("topology", inputs.topology, Topology),
        collectives=reader.read("collectives", inputs.collectives, Collectives),
        device=reader.read("device", inputs.device, DeviceFacts),
        data=_read_data(reader, plan, trials_dir),
        steps={i: reader.read_steps(i, trials_dir / i / "metrics.jsonl") for i in ids if trials_dir},
        attempts=attempts,
        stages=reader.read_benchmarks(inputs.benchmarks),
        stamps=tuple(reader.stamps),
        missing=tuple(reader.missing),
        goodputs={i: _read_goodput(trials_dir / i, attempts[i]) for i in ids if trials_dir},
    )


class _Reader:
    """Reads inputs one by one, and remembers their stamps and what was missing."""

    def __init__(self) -> None:
        self.stamps: list[Stamp] = []
        self.missing: list[Missing] = []

    def read(self, what: str, path: Path | None, kind: type[R], *, needed: bool = False) -> R | None:
        if path is None:
            self.missing.append(Missing(what, "not passed to the report"))
            return None
        try:
            record = read_artifact(path, kind)
        except InputFileError as error:
            self.missing.append(Missing(what, str(error)))
            return None
        except ArtifactError as error:
            if needed:
                raise
            self.missing.append(Missing(what, str(error)))
            return None
        self.stamps.append(_read_stamp(path))
        return record

    def read_steps(self, trial_id: str, path: Path) -> tuple[StepRecord, ...]:
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            return ()  # a trial that never took a step has none; its verdict says why
        steps = [step for line in lines if (step := _parse_step(line)) is not None]
        if len(steps) < len(lines):
            self.missing.append(Missing(f"steps of {trial_id}", f"{len(lines) - len(steps)} damaged lines in {path}"))
        return tuple(steps)

    def read_benchmarks(self, paths: Sequence[Path]) -> tuple[StageTime, ...]:
        stages: list[StageTime] = []
        for path in paths:
            try:
                stages += read_stage_times(path)
            except InputFileError as error:
                self.missing.append(Missing(f"time of {path.stem}", str(error)))
        return tuple(stages)


def _find_sweep(path: Path) -> Path:
    """The finished sweep, or what is known of an unfinished one."""
    partial = path.with_name(PARTIAL_SWEEP)
    return partial if not path.exists() and partial.exists() else path


def _refuse_other_study(study: str, plan: Plan | None, sweep: Sweep | None) -> None:
    for what, record in (("plan", plan), ("sweep", sweep)):
        if record is not None and record.study != study:
            raise StudyError(
                f"the {what} is of study {record.study!r}, expected {study!r}: pass the files of one study"
            )


def _read_data(reader: _Reader, plan: Plan | None, trials_dir: Path | None) -> ShardManifest | None:
    if plan is None or not plan.trials or trials_dir is None:
        return None
    trial = next((trial for trial in plan.trials if trial.reads_data), None)
    if trial is None:
        return None
    dataset = trial.settings.get("dataset")
    path = trials_dir.parent / "shards" / str(dataset) / "MANIFEST.json"
    return reader.read("data manifest", path, ShardManifest)


def _read_stamp(path: Path) -> Stamp:
    document = read_document(path)
    provenance = {str(key): str(value) for key, value in document.get("provenance", {}).items()}
    return Stamp(path.name, str(document["schema"]), str(document.get("settings_hash", "")), provenance)


def _read_attempts(trial_dir: Path) -> tuple[AttemptEnd, ...]:
    # The sweep's own verdict stands; an unreadable detail must not hide it.
    folder = TrialFolder(trial_dir)
    ends = read_ends(folder, read_attempt_numbers(folder))
    return tuple(ends[number] for number in sorted(ends))


def _read_goodput(trial_dir: Path, ends: Sequence[AttemptEnd]) -> Goodput:
    traces = read_traces(TrialFolder(trial_dir))
    return summarise_goodput(read_events(trial_dir), traces, {end.attempt: end for end in ends}, now=time.time())


def _parse_step(line: str) -> StepRecord | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        return StepRecord(**fields)
    except (ValueError, TypeError):
        return None  # torn by a crash in mid-write
