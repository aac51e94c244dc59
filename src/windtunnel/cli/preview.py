"""What a study would submit, before any of its stages has run: `plan STUDY --dry-run` and `sweep STUDY --dry-run`."""

from collections.abc import Sequence
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.cli.studies import Studies, check_studies, read_studies
from windtunnel.cli.workflow import read_request
from windtunnel.errors import SettingsError
from windtunnel.launch.context import SweepContext
from windtunnel.launch.preflight import check_sweep, refuse_mistakes, render_scripts
from windtunnel.launch.preflight_table import render_bounds, render_preflight
from windtunnel.launch.run import make_context
from windtunnel.planner.run import make_plan, run_plan
from windtunnel.records.cluster import Topology
from windtunnel.records.plan import Plan
from windtunnel.settings.study import SweepStageSettings


def run_preview(study: str, overrides: Sequence[str], *, dry_run: bool, project: Path) -> None:
    """Print the study's plan, with what is known of the cluster. Raises a UserError for what cannot run."""
    if not dry_run:
        raise SettingsError(f"plan {study} prints only: add --dry-run (snakemake makes plan.json)")
    studies = read_studies({"study": study, "overrides": list(overrides)}, project=project)
    check_studies(studies, project=project)
    composed = studies.by_name[study]
    store = Path(studies.store)
    facts = store / "cluster" / composed.partition
    plan = run_plan(
        composed.plan,
        features=_find_features(studies, study),
        topology=_if_there(facts / "topology.json"),
        collectives=_if_there(facts / "collectives.json"),
        device=_if_there(facts / "device.json"),
        models=None,
        import_root=str(project),
        out=None,
        dry_run=True,
    )
    print(f"\n{render_bounds(plan, composed.settings.cluster)}", flush=True)


def run_sweep_preview(study: str, overrides: Sequence[str], *, profile: str, project: Path) -> None:
    """Print the pre-flight of a sweep and the scripts that it would submit; nothing is submitted or written.

    Raises a UserError with all that is wrong, after printing.
    """
    request = read_request(study, overrides, profile=profile, project=project)
    check_studies(request.studies, project=project)
    plan, context = _plan_sweep(request.studies, study, project)
    preflight = check_sweep(plan, context)
    print(render_preflight(preflight))
    for name, text in render_scripts(plan, context, preflight.limits) if preflight.on_slurm else []:
        print(f"\n# {name}\n{text}")
    refuse_mistakes(preflight)


def _plan_sweep(studies: Studies, study: str, project: Path) -> tuple[Plan, SweepContext]:
    composed = studies.by_name[study]
    cluster, sweep = composed.settings.cluster, composed.settings.sweep
    features = _find_features(studies, study)
    topology = Path(studies.store) / "cluster" / composed.partition / "topology.json"
    facts = _if_there(topology)
    known = read_artifact(facts, Topology) if facts is not None else None
    plan = make_plan(composed.plan, topology=known, features=features, import_root=str(project))
    context = make_context(
        SweepStageSettings(study=study, cluster=cluster, sweep=sweep),
        identity=plan.identity,
        features=features,
        topology=facts,
        store=Path(studies.store),
        import_root=str(project),
        jobs_dir=Path(studies.results) / study / "jobs",
    )
    return plan, context


def _find_features(studies: Studies, study: str) -> Path | None:
    key = studies.by_name[study].features_key
    return _if_there(Path(studies.store) / "features" / key / "MANIFEST.json")


def _if_there(path: Path) -> Path | None:
    return path if path.is_file() else None
