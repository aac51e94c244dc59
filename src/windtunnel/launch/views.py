"""One trial as people watch it, from whichever of its records tell enough."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.hostlist import collapse_hostlist
from windtunnel.launch.glance import Glance
from windtunnel.launch.roster import Row
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.reconcile import Phase, Standing, count_node_seconds, find_job_id
from windtunnel.ledger.story import find_hosts
from windtunnel.ledger.tail import read_last_record
from windtunnel.records.trial import FINAL, Verdict


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


def view_entry(entry: Mapping[str, Any]) -> TrialView:
    """A trial of a published sweep, from its entry as plain values."""
    outcome = entry["outcome"]
    hosts = tuple(outcome["rank_hosts"] if outcome else entry.get("hosts", ()))
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
    view = view_glance(row, seen, strict=False)
    return view if outcome else replace(view, step=entry.get("step"), loss=entry.get("loss"))


def view_glance(row: Row, seen: Glance, *, strict: bool) -> TrialView:
    """A trial whose end two reads told, or that was never begun."""
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


def view_facts(row: Row, facts: TrialFacts, standing: Standing, path: Path, *, strict: bool) -> TrialView:
    """A trial that all its records had to be read for; `path` is its folder."""
    seen = Glance(
        standing.verdict,
        standing.evidence,
        attempts=len(facts.attempts),
        node_seconds=count_node_seconds(facts),
        hosts=find_hosts(facts.events),
        job_id=find_job_id(facts),
    )
    view = replace(view_glance(row, seen, strict=strict), state=str(standing.verdict or standing.phase))
    last = read_last_record(path / "metrics.jsonl")
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
