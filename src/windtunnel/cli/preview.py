"""`windtunnel plan STUDY --dry-run`: what a study would submit, before any of its stages has run."""

from collections.abc import Sequence
from pathlib import Path

from windtunnel.cli.studies import check_studies, read_studies
from windtunnel.errors import SettingsError
from windtunnel.planner.run import run_plan


def run_preview(study: str, overrides: Sequence[str], *, dry_run: bool, project: Path) -> None:
    """Print the study's plan, with what is known of the cluster. Raises a UserError for what cannot run."""
    if not dry_run:
        raise SettingsError(f"plan {study} prints only: add --dry-run (snakemake makes plan.json)")
    studies = read_studies({"study": study, "overrides": list(overrides)}, project=project)
    check_studies(studies, project=project)
    composed = studies.by_name[study]
    store = Path(studies.store)
    facts = store / "cluster" / composed.partition
    run_plan(
        composed.plan,
        features=_if_there(store / "features" / composed.features_key / "MANIFEST.json"),
        topology=_if_there(facts / "topology.json"),
        collectives=_if_there(facts / "collectives.json"),
        device=_if_there(facts / "device.json"),
        models=None,
        import_root=str(project),
        out=None,
        dry_run=True,
    )


def _if_there(path: Path) -> Path | None:
    return path if path.is_file() else None
