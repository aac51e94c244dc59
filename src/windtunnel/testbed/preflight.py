"""What must hold before a testbed is built: nothing of a site's Slurm is near, and the tools are there."""

import os
from pathlib import Path

from windtunnel.errors import ClusterError
from windtunnel.testbed.daemons import find_tool, needed_tools
from windtunnel.testbed.hosts import MARK
from windtunnel.testbed.network import can_use_namespaces
from windtunnel.testbed.places import SITE_CONFIG, half_written, state_file
from windtunnel.testbed.processes import find_foreign_daemons
from windtunnel.testbed.spec import ClusterSpec, check_spec

# Older Debian packages keep it in the second; both ship a plugstack.conf, which is no configuration.
_SITE_FILES = (SITE_CONFIG / "slurm.conf", Path("/etc/slurm-llnl/slurm.conf"))


def check_preflight(spec: ClusterSpec) -> None:
    """Raise ClusterError, with the reason and the way out, where a testbed cannot or must not be built."""
    check_spec(spec)
    _check_site()
    path = os.environ.get("PATH", "")
    for tool in needed_tools(spec):
        find_tool(tool, path)
    if spec.network:
        _check_network()
    _check_folder(spec.folder)


def _check_site() -> None:
    if inside := os.environ.get(MARK):
        raise ClusterError(f"this shell is inside the testbed in {inside}: leave it before starting another")
    for path in (*_SITE_FILES, *map(Path, filter(None, [os.environ.get("SLURM_CONF")]))):
        if path.exists():
            raise ClusterError(
                f"{path} is a Slurm configuration that is not the testbed's: it belongs to a site, which the testbed "
                "never touches; start the testbed on a machine outside that cluster"
            )
    if daemons := find_foreign_daemons():
        raise ClusterError(
            f"Slurm runs here already: {', '.join(daemons)}, which no testbed of this user started; "
            "start the testbed on a machine without it"
        )


def _check_network() -> None:
    if not can_use_namespaces():
        raise ClusterError(
            f"--network needs the right to make namespaces, which uid {os.geteuid()} lacks here: "
            "become root outside a container, or use --no-network"
        )
    if not SITE_CONFIG.is_dir():
        raise ClusterError(
            f"{SITE_CONFIG} is not a folder, so the testbed cannot show its own configuration there: "
            "install Slurm from Debian's or Ubuntu's packages"
        )


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ClusterError(f"--dir {folder} is a file, expected a folder that is new, empty or a testbed's")
    if folder.is_dir() and not state_file(folder).exists() and set(folder.iterdir()) - set(half_written(folder)):
        raise ClusterError(f"--dir {folder} holds other files, expected a new or empty folder: choose another")
