"""The workflow as our own commands start it: which Snakefile, which profile, and what that profile says."""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windtunnel.cli.project import project_root, snakefile, snakemake_config_dir
from windtunnel.cli.studies import ComposedStudy, Studies, read_studies
from windtunnel.errors import SettingsError

WORKFLOW = Path("conf/workflow.yaml")
PROFILE_ENV = "SNAKEMAKE_PROFILE"


@dataclass(frozen=True)
class Request:
    """A study by name, with settings changed, at a place: what `windtunnel sweep STUDY` is asked for."""

    study: str
    overrides: tuple[str, ...]
    profile: Path
    typed_profile: str
    """Empty where the study's cluster alone chose it."""
    studies: Studies

    @property
    def composed(self) -> ComposedStudy:
        """The study's settings and plan."""
        return self.studies.by_name[self.study]

    @property
    def folder(self) -> Path:
        """Where the study's own artifacts are."""
        return Path(self.studies.results) / self.study


def read_request(study: str, overrides: Sequence[str], *, profile: str, project: Path) -> Request:
    """The request, its study composed as the workflow will; raises a UserError for what is wrong with it.

    Without a profile the one of $SNAKEMAKE_PROFILE is meant, or what fits the study's cluster.
    """
    named = typed = profile or os.environ.get(PROFILE_ENV, "")
    base = read_config_file(project / WORKFLOW)
    changed = {**base, "study": study, "overrides": [*_listed(base.get("overrides")), *overrides]}
    if not named:
        kind = read_studies(changed, project=project).by_name[study].settings.cluster.kind
        named = "slurm" if kind == "slurm" else "local"
    folder = find_profile(named, project)
    # A profile's configuration file stands above the workflow's, and what is typed above both.
    config = {**base, **_read_place(folder), "study": study, "overrides": changed["overrides"]}
    return Request(study, tuple(overrides), folder, typed, read_studies(config, project=project))


def render_workflow(request: Request, targets: Sequence[str], *, project: Path) -> list[str]:
    """The command that makes `targets`; after it, plain `snakemake` at the same place finds them made."""
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(find_snakefile(project))]
    argv += ["--profile", str(request.profile), "--config", f"study={request.study}"]
    if request.overrides:
        overrides = [*_listed(read_config_file(project / WORKFLOW).get("overrides")), *request.overrides]
        argv.append(f"overrides={json.dumps(overrides)}")
    if not (project / WORKFLOW).is_file():
        # Ours stands in for the project's; named on the command line, it would hide the profile's own.
        place = _find_place(request.profile)
        argv += ["--configfile", str(project_root() / WORKFLOW), *([str(place)] if place is not None else [])]
    return [*argv, "--quiet", "rules", "--", *targets]


def find_snakefile(project: Path) -> Path:
    """The project's own workflow, or ours."""
    own = (project / name for name in ("Snakefile", "workflow/Snakefile"))
    return next((path for path in own if path.is_file()), snakefile())


def find_profile(name: str, project: Path) -> Path:
    """Folder of a profile: a path, one that is installed, or ours. Raises SettingsError with the known names."""
    ours = project_root() / "cluster_profiles"
    for folder in (project / name, snakemake_config_dir() / name, ours / name):
        if (folder / "config.yaml").is_file():
            return folder.resolve()
    known = ", ".join(sorted(path.parent.name for path in ours.glob("*/config.yaml")))
    raise SettingsError(f"profile {name!r} is not known, expected a folder with config.yaml, or one of: {known}")


def read_config_file(path: Path) -> dict[str, Any]:
    """A workflow's configuration file; empty without one. Raises SettingsError for a broken one."""
    try:
        plain = yaml.safe_load(path.read_text()) if path.is_file() else None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not YAML in UTF-8: {error}; mend it") from None
    if plain is not None and not isinstance(plain, dict):
        raise SettingsError(f"{path} holds no mapping of settings: mend it")
    return plain or {}


def _find_place(folder: Path) -> Path | None:
    """The configuration file that a profile names."""
    named = read_config_file(folder / "config.yaml").get("configfile")
    return folder / named if isinstance(named, str) else None


def _read_place(folder: Path) -> dict[str, Any]:
    place = _find_place(folder)
    return read_config_file(place) if place is not None else {}


def _listed(overrides: Any) -> list[str]:
    return shlex.split(overrides) if isinstance(overrides, str) else [str(word) for word in overrides or ()]
