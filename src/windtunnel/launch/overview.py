"""The state of a study as a value: each trial's, who drives it, and what it cost so far. Reads only."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.cost import Cost, price
from windtunnel.errors import ArtifactError
from windtunnel.launch.detach import read_driver_job
from windtunnel.launch.glance import glance
from windtunnel.launch.place import LOG, SweepPlace, read_place
from windtunnel.launch.roster import PLAN, Row, read_content, read_roster
from windtunnel.launch.sights import CACHE, Sights, read_sights
from windtunnel.launch.views import TrialView, view_entry, view_facts, view_glance
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import Holder, read_live_holder
from windtunnel.ledger.reconcile import Phase, Standing, find_job_id, reconcile
from windtunnel.ledger.story import IN_FLIGHT_S, find_submission
from windtunnel.records.trial import Sweep
from windtunnel.slurm.queue import base_of

SWEEP = "sweep.json"
LEASES = (".driver", ".lease")
"""Folders of a study's leases: of the process that drives its workflow, and of its sweep."""
LOST_AFTER_S = 120.0
POLL_S = 30.0
"""The settings' own defaults, for a study that has not been swept yet; a test holds them equal."""


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
        trials = _read_published(folder / SWEEP)
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
    """Where a trial stands, judged as its driver does.

    While Slurm is silent, a job that may be in its queue is UNSURE for as long as that lasts, never LOST.
    """
    job_id = find_trial_job(facts, sights)
    sight = sights.of(job_id)
    lost_after_s = float(place.get("sweep", "lost_after_s", LOST_AFTER_S))
    if sights.problem and (not job_id or base_of(job_id).isdecimal()):
        lost_after_s = float("inf")
        if sight.phase == Phase.UNSURE:
            sight = replace(sight, evidence=sights.problem)
    return reconcile(facts, sight, now=time.time(), lost_after_s=lost_after_s, in_flight_s=IN_FLIGHT_S)


def find_trial_job(facts: TrialFacts, sights: Sights) -> str:
    """A trial's job, also of a submission whose answer nobody wrote down; empty while none is known."""
    submission = find_submission(facts.events)
    return sights.find(submission) if submission is not None else find_job_id(facts)


def read_study_sights(trials: Collection[TrialFacts], folder: Path, place: SweepPlace, *, also: str = "") -> Sights:
    """What Slurm says of trials' jobs, and of the job `also`, asked for no more often than a driver asks."""
    poll_s = float(place.get("sweep", "poll_s", POLL_S))
    job_ids = {also, *(find_job_id(facts) for facts in trials)}
    names = {begun.name for facts in trials if (begun := find_submission(facts.events)) is not None}
    return read_sights(job_ids, cache=folder / CACHE, poll_s=poll_s, names=names)


def _read_published(path: Path) -> tuple[TrialView, ...]:
    content = read_content(path, Sweep.SCHEMA)
    try:
        return tuple(view_entry(entry) for entry in content["entries"])
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{path} does not hold a {Sweep.SCHEMA}: {error!r}") from error


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
            views[row.id] = view_glance(row, seen, strict=strict)
        else:
            open_.append((row, read_facts(TrialFolder(Path(trials_dir, row.id)), steps=row.steps)))
    sights = read_study_sights([facts for _, facts in open_], folder, place, also=also)
    for row, facts in open_:
        standing = stand_trial(facts, sights, place)
        view = view_facts(row, facts, standing, Path(trials_dir, row.id), strict=strict)
        views[row.id] = replace(view, job_id=find_trial_job(facts, sights))
    return tuple(views[row.id] for row in rows), sights
