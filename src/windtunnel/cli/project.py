"""Where things lie: what Windtunnel ships, the user's own configuration, the site file."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

import windtunnel
from windtunnel.errors import InputFileError, SettingsError
from windtunnel.settings.cluster import ClusterSettings

SITE_ENV = "WINDTUNNEL_SITE"
SITE_FILE = "site.yaml"


def project_root() -> Path:
    """The folder with our `conf`, `workflow` and `cluster_profiles`: the checkout, or the installed wheel's copy."""
    package = Path(windtunnel.__file__).resolve().parent
    for root in (package / "project", package.parents[1]):
        if (root / "Snakefile").is_file() and (root / "conf" / "config.yaml").is_file():
            return root
    raise InputFileError(f"{package} has no workflow and conf beside it: install windtunnel's wheel again")


def snakefile() -> Path:
    """The workflow, for a user's `module windtunnel`."""
    return project_root() / "Snakefile"


def conf_dirs(project: Path) -> tuple[Path, ...]:
    """Configuration folders in order of precedence: the user's own, then ours."""
    ours = project_root() / "conf"
    own = project.resolve() / "conf"
    return (own, ours) if own.is_dir() and own != ours else (ours,)


def snakemake_config_dir() -> Path:
    """Folder in which `snakemake --profile NAME` finds a user's profiles."""
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(base) if base else Path.home() / ".config") / "snakemake"
    except RuntimeError:  # a user id without a name, as in containers
        raise SettingsError("this user has no home directory: set HOME or XDG_CONFIG_HOME") from None


def find_site_file(project: Path) -> Path | None:
    """The site file: `$WINDTUNNEL_SITE`, else the project's `conf/local/`, else the installed profile's."""
    named = os.environ.get(SITE_ENV)
    if named:
        return Path(named)
    own = project / "conf" / "local" / SITE_FILE
    if own.is_file():
        return own
    try:
        installed = snakemake_config_dir() / "slurm" / SITE_FILE
    except SettingsError:  # nothing is installed for a user without a home
        return None
    return installed if installed.is_file() else None


@contextmanager
def slurm_times() -> Iterator[None]:
    """Let YAML read `2:00:00` and `007` as the text they are.

    YAML 1.1, which PyYAML and so Hydra follow, takes the one for a number in base 60: 7200, a time limit of five
    days; and the other for one in base 8, which leaves an account of that name without its zeros.
    """
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    text = ("tag:yaml.org,2002:str", re.compile(r"\d+(?::[0-5]?\d)+$|0\d+$"))
    yaml.SafeLoader.yaml_implicit_resolvers = {
        first: [text, *known] if first.isdigit() else known for first, known in resolvers.items()
    }
    try:
        yield
    finally:
        yaml.SafeLoader.yaml_implicit_resolvers = resolvers


def read_site(project: Path) -> dict[str, Any]:
    """What the site file sets, checked for unknown names; empty without a file."""
    path = find_site_file(project)
    if path is None:
        return {}
    try:
        with slurm_times():
            plain = yaml.safe_load(path.read_text()) or {}
    except OSError as error:
        raise InputFileError(f"site file {path} cannot be read: {error.strerror}: correct ${SITE_ENV}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"site file {path} is not UTF-8 text ({error.reason}): save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"site file {path} is not YAML: {error}") from None
    known = sorted(set(ClusterSettings.model_fields) - {"kind"})
    unknown = sorted(set(plain) - set(known)) if isinstance(plain, dict) else ["its text"]
    if unknown:
        raise SettingsError(f"site file {path}: unknown setting {unknown[0]!r} (known here: {', '.join(known)})")
    return {key: value for key, value in plain.items() if value is not None}
