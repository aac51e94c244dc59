"""The plan stage: a study's trials, those that cannot run with the reason, and what will be submitted."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.artifacts import hash_json, read_artifact, read_document, write_artifact
from windtunnel.errors import ArtifactError, StudyError
from windtunnel.identity import read_identity
from windtunnel.planner.prune import find_misfit
from windtunnel.planner.space import Combination, find_refusal, list_combinations, make_shape, name_trial, plan_trial
from windtunnel.planner.table import render_plan
from windtunnel.records.cluster import Collectives, DeviceFacts, Models, Topology
from windtunnel.records.plan import Plan, Pruned
from windtunnel.settings.study import PlanSettings


def run_plan(
    settings: PlanSettings,
    *,
    features: Path | None,
    topology: Path | None,
    collectives: Path | None,
    device: Path | None,
    models: Path | None,
    import_root: str,
    out: Path | None,
    dry_run: bool,
) -> Plan:
    """Plan the study, print it, and publish `plan.json` unless `dry_run`, which needs no `features` either.

    Raises StudyError when no trial is left. The measured rates and the models' shapes are read so that a damaged
    one stops the study here; no rule of pruning depends on them yet.
    """
    for path, kind in ((collectives, Collectives), (device, DeviceFacts), (models, Models)):
        if path is not None:
            read_artifact(path, kind)
    assert dry_run or features is not None or not needs_data(settings), "a plan that is published has its data"
    facts = read_artifact(topology, Topology) if topology is not None else None
    limit_days = min((candidate.settings.cluster.max_age_days for candidate in settings.candidates), default=0.0)
    for path in (topology, collectives, device):
        if path is not None and (age_days := read_age_days(path)) > limit_days:
            print(f"warning: {path} is {age_days:.0f} days old (cluster.max_age_days): remove it to measure again")
    plan = make_plan(settings, topology=facts, features=features, import_root=import_root)
    print(render_plan(plan, facts), flush=True)
    if out is not None and not dry_run:
        write_artifact(out, plan, settings_hash=hash_json(settings))
    return plan


def read_age_days(path: Path) -> float:
    """Days since an artifact was made; raises ArtifactError when it does not say."""
    try:
        created = datetime.fromisoformat(read_document(path)["provenance"]["created"])
        return (datetime.now(UTC) - created).total_seconds() / 86400
    except (KeyError, TypeError, ValueError):
        raise ArtifactError(f"{path} does not say when it was made: remove it to measure again") from None


def needs_data(settings: PlanSettings) -> bool:
    """Whether any trial reads feature shards."""
    return any(candidate.settings.workload.needs_data for candidate in settings.candidates)


def make_plan(settings: PlanSettings, *, topology: Topology | None, features: Path | None, import_root: str) -> Plan:
    """The study's trials and prunings; raises StudyError when no trial is left."""
    kept, pruned = split_space(settings, topology)
    identity = read_identity(features)
    trials = tuple(
        plan_trial(trial, choices=choices, identity=identity, import_root=import_root) for choices, trial in kept
    )
    return Plan(settings.study, identity, trials, pruned)


def split_space(
    settings: PlanSettings, topology: Topology | None = None
) -> tuple[tuple[Combination, ...], tuple[Pruned, ...]]:
    """Combinations that can run and those that cannot, by settings alone when there is no topology yet.

    Raises StudyError, with the reasons, when none can.
    """
    measured = {candidate.settings.cluster.partition for candidate in settings.candidates}
    kept: list[Combination] = []
    pruned: list[Pruned] = []
    for choices, trial in list_combinations(settings):
        # The facts are of the study's own partition; a trial's shape may name another.
        known = topology if trial.cluster.partition in measured else None
        reason = find_refusal(trial) or (find_misfit(make_shape(trial), known) if known is not None else "")
        if reason:
            pruned.append(Pruned(name_trial(trial, choices), choices, reason))
        else:
            kept.append((choices, trial))
    if not kept:
        raise StudyError(_describe_empty(settings.study, pruned))
    return tuple(kept), tuple(pruned)


def _describe_empty(study: str, pruned: Sequence[Pruned]) -> str:
    if not pruned:
        return f"study {study!r} has no trials: give space.groups or space.values at least one combination"
    names: dict[str, list[str]] = {}
    for item in pruned:
        names.setdefault(item.reason, []).append(item.name)
    reasons = "".join(f"\n  {reason} ({_first_of(trials)})" for reason, trials in names.items())
    return f"study {study!r} has no legal trial of {len(pruned)}:{reasons}"


def _first_of(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
