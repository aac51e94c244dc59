"""Install a Snakemake profile where `snakemake --profile NAME` finds it, with a site file to fill in."""

import shutil

from windtunnel.cli.project import SITE_FILE, project_root, snakemake_config_dir
from windtunnel.errors import SettingsError


def run_install(name: str) -> None:
    """Copy our profile to the user's Snakemake folder. A site file that is there already is kept."""
    profiles = project_root() / "cluster_profiles"
    known = sorted(path.name for path in profiles.iterdir() if (path / "config.yaml").is_file())
    if name not in known:
        raise SettingsError(f"profile {name!r} is not known, expected one of: {', '.join(known)}")
    target = snakemake_config_dir() / name
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted((profiles / name).iterdir()):
        kept = path.name == SITE_FILE and (target / SITE_FILE).exists()
        if not kept:
            shutil.copyfile(path, target / path.name)
        print(f"{'kept' if kept else 'wrote'} {target / path.name}", flush=True)
    if (target / SITE_FILE).exists():
        print(f"Fill in {target / SITE_FILE} (partition, account, QOS, modules).", flush=True)
    print(f"Then, in your project: snakemake --profile {name}", flush=True)
