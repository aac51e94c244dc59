"""The state of a study as a value: each trial's, who drives it, and what it cost so far. Reads only."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from windtunnel.cost import Cost, price
from windtunnel.hostlist import collapse_hostlist
from windtunnel.launch.detach import read_driver_job
from windtunnel.launch.glance import Glance, glance
from windtunnel.launch.place import LOG, SweepPlace, read_place
from windtunnel.launch.roster import PLAN, Row, read_content, read_roster
from windtunnel.launch.sights import CACHE, Sights, read_sights
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import Holder, read_live_holder
from windtunnel.ledger.reconcile import Phase, Standing, count_node_seconds, find_job_id, reconcile
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.trial import FINAL, Sweep, Verdict

SWEEP = "sweep.json"
LEASES = (".driver", ".lease")
"""Folders of a study's leases: of the process that drives its workflow, and of its sweep."""
LOST_AFTER_S = 120.0
POLL_S = 30.0
"""The settings' own defaults, for a study that has not been swept yet; a test holds them equal."""


@dataclass(frozen=True)
class TrialView:
    """One trial as people watch it; None for what is not known, or does not exist yet."""

    trial_id: str
    name: str
    state: str
    """A verdict, or NEW, QUEUED, RUNNING, UNSURE."""
    final: bool
    """Whether no later attempt changes it."""
    reason: str
    """Why it waits, or the evidence of its verdict."""
    nodes: int
    hosts: str
    """In Slurm's notation; empty before the first start."""
    job_id: str
    step: int | None
    steps: int
    """0 where its program says so itself."""
    loss: float | None
    """Of the newest training steps."""
    validation_loss: float | None
    samples_per_s: float | None
    eta_s: float | None
    """Seconds of training that are left at the present speed."""
    attempts: int
    node_seconds: float


@dataclass(frozen=True)
class StudyView:
    """One study; `driver` is the live process that drives it."""

    study: str
    folder: str
    trials: tuple[TrialView, ...]
    pruned: int | None
    """None where a published sweep was looked at alone."""
    published: bool
    driver: Holder | None
    command: str
    """What goes on with it, as one types it."""
    waiting: str
    """What of a job that waits to drive it; empty without one."""
    log: str
    """What its detached driver says; empty without one."""
    slurm_asked_at: float
    """Seconds since 1970; 0 when there was nothing to ask."""
    problem: str
    """Why what Slurm says is missing or old."""
    cost: Cost

    def count_states(self) -> dict[str, int]:
        """How many trials are in each state, the most frequent first."""
        return dict(Counter(trial.state for trial in self.trials).most_common())

    @property
    def open(self) -> int:
        """Trials without a final verdict."""
        return sum(not trial.final for trial in self.trials)


def read_study(folder: Path, *, known: Mapping[str, TrialView] | None = None) -> StudyView:
    """The study whose plan, or published sweep, is in `folder`; a trial that is final in `known` is not read again.

    Raises InputFileError without a plan, ArtifactError for a damaged one.
    """
    place = read_place(folder)
    driver = read_driver(folder)
    log = folder / LOG
    shared = {"folder": str(folder), "driver": driver, "command": place.command}
    shared["log"] = str(log) if log.is_file() else ""
    if is_published(folder):
        trials = tuple(_view_entry(entry) for entry in read_content(folder / SWEEP, Sweep.SCHEMA)["entries"])
        return _make(place, trials, Sights(), study=place.study, pruned=None, published=True, waiting="", **shared)
    roster = read_roster(folder)
    job = read_driver_job(folder) if driver is None else None
    trials, sights = _view_rows(roster.rows, place, folder, known or {}, also=job.job_id if job is not None else "")
    shared["waiting"] = _tell_waiting(job.job_id, sights) if job is not None else ""
    return _make(place, trials, sights, study=roster.study, pruned=len(roster.pruned), published=False, **shared)


def is_published(folder: Path) -> bool:
    """Whether the sweep of the present plan has all its verdicts."""
    try:
        sweep = (folder / SWEEP).stat().st_mtime_ns
    except OSError:
        return False
    try:
        return sweep >= (folder / PLAN).stat().st_mtime_ns
    except OSError:
        return True


def read_driver(folder: Path) -> Holder | None:
    """The live process that drives the study in `folder`, or a batch of its jobs."""
    leases = [*(folder / name for name in LEASES), *sorted(folder.glob("batches/*/.lease"))]
    return next((holder for lease in leases if (holder := read_live_holder(lease)) is not None), None)


def stand_trial(facts: TrialFacts, sights: Sights, place: SweepPlace) -> Standing:
    """Where a trial stands, judged as its driver does."""
    return reconcile(
        facts,
        sights.of(find_job_id(facts)),
        now=time.time(),
        lost_after_s=float(place.get("sweep", "lost_after_s", LOST_AFTER_S)),
    )


def read_study_sights(job_ids: set[str], folder: Path, place: SweepPlace) -> Sights:
    """What Slurm says of the study's jobs, asked for no more often than its driver asks."""
    poll_s = float(place.get("sweep", "poll_s", POLL_S))
    return read_sights(job_ids, cache=folder / CACHE, poll_s=poll_s)


def _make(place: SweepPlace, trials: tuple[TrialView, ...], sights: Sights, **shared: Any) -> StudyView:
    cost = price(
        sum(trial.node_seconds for trial in trials),
        per_node_hour=float(place.get("cluster", "cost_per_node_hour", 0.0)),
        currency=str(place.get("cluster", "currency", "")),
    )
    return StudyView(trials=trials, slurm_asked_at=sights.asked_at, problem=sights.problem, cost=cost, **shared)


def _tell_waiting(job_id: str, sights: Sights) -> str:
    sight = sights.of(job_id)
    if sight.phase not in (Phase.QUEUED, Phase.RUNNING):
        return ""
    return f"job {job_id} is to drive it: {sight.phase}{f' ({sight.evidence})' if sight.evidence else ''}"


def _view_rows(
    rows: Sequence[Row], place: SweepPlace, folder: Path, known: Mapping[str, TrialView], *, also: str
) -> tuple[tuple[TrialView, ...], Sights]:
    views: dict[str, TrialView] = {row.id: view for row in rows if (view := known.get(row.id)) and view.final}
    trials_dir = f"{place.store}/trials"
    strict = bool(place.get("sweep", "strict", False))
    open_: list[tuple[Row, TrialFacts]] = []
    for row in rows:
        if row.id in views:
            continue
        seen = glance(trials_dir, row)
        if seen is not None:
            views[row.id] = _view_glance(row, seen, strict=strict)
        else:
            open_.append((row, read_facts(TrialFolder(Path(trials_dir, row.id)), steps=row.steps)))
    job_ids = {also, *(find_job_id(facts) for _, facts in open_)}
    sights = read_study_sights(job_ids, folder, place)
    for row, facts in open_:
        standing = stand_trial(facts, sights, place)
        views[row.id] = _view_facts(row, facts, standing, Path(trials_dir, row.id), strict=strict)
    return tuple(views[row.id] for row in rows), sights


def _view_entry(entry: Mapping[str, Any]) -> TrialView:
    outcome = entry["outcome"]
    hosts = tuple(outcome["rank_hosts"]) if outcome else ()
    steps = outcome["steps"] if outcome else 0
    row = Row(entry["trial_id"], entry["name"], steps, len(set(hosts)), 0)
    seen = Glance(
        Verdict(entry["verdict"]),
        entry["evidence"],
        entry["attempts"],
        entry["node_seconds"],
        hosts=hosts,
        outcome=outcome,
    )
    return _view_glance(row, seen, strict=False)


def _view_glance(row: Row, seen: Glance, *, strict: bool) -> TrialView:
    outcome = seen.outcome or {}
    return TrialView(
        trial_id=row.id,
        name=row.name,
        state=str(seen.verdict or Phase.NEW),
        final=_is_final(seen.verdict, strict=strict),
        reason=seen.evidence,
        nodes=len(set(seen.hosts)) or row.nodes,
        hosts=_collapse(seen.hosts),
        job_id=seen.job_id,
        step=outcome.get("steps"),
        steps=row.steps,
        loss=outcome.get("final_train_loss"),
        validation_loss=_find_validation_loss(outcome),
        samples_per_s=outcome.get("samples_per_s"),
        eta_s=None,
        attempts=seen.attempts,
        node_seconds=seen.node_seconds,
    )


def _view_facts(row: Row, facts: TrialFacts, standing: Standing, path: Path, *, strict: bool) -> TrialView:
    started = next((event for event in reversed(facts.events) if event.kind == "started"), None)
    seen = Glance(
        standing.verdict,
        standing.evidence,
        attempts=len(facts.attempts),
        node_seconds=count_node_seconds(facts),
        hosts=tuple((started.details.get("hosts") or ()) if started is not None else ()),
        job_id=find_job_id(facts),
    )
    view = replace(_view_glance(row, seen, strict=strict), state=str(standing.verdict or standing.phase))
    last = _parse_metrics(read_last_line(path / "metrics.jsonl"))
    step, step_s = last.get("step"), last.get("step_s")
    running = standing.phase == Phase.RUNNING
    known = running and isinstance(step, int) and isinstance(step_s, int | float) and row.steps
    eta_s = max(0, row.steps - step) * step_s if known and step is not None and step_s is not None else None
    speed = last.get("samples_per_s") if running else None
    return replace(view, step=step, loss=last.get("loss"), samples_per_s=speed, eta_s=eta_s)


def _is_final(verdict: Verdict | None, *, strict: bool) -> bool:
    return verdict in FINAL and not (strict and verdict == Verdict.FAILED)


def _collapse(hosts: tuple[str, ...]) -> str:
    names = tuple(dict.fromkeys(hosts))
    return names[0] if len(names) == 1 else collapse_hostlist(names) if names else ""


def _find_validation_loss(outcome: Mapping[str, Any]) -> float | None:
    evaluations = outcome.get("evaluations", ())
    return next((item["loss"] for item in evaluations if item["split"] == "validation"), None)


def _parse_metrics(line: str) -> dict[str, Any]:
    try:
        record = from_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
