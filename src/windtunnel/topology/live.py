"""The network and the machine as they are now: asks Slurm, nvidia-smi and sysfs, and gives it to the parsers."""

import shutil
from pathlib import Path

from windtunnel.device.probe import ask_nvidia_smi
from windtunnel.errors import ClusterError, CommandError
from windtunnel.fabric.locality import complete_machine, read_gpu_buses
from windtunnel.fabric.nvidia_matrix import parse_matrix
from windtunnel.fabric.slurm_nodes import parse_nodes_text
from windtunnel.fabric.slurm_show import parse_show
from windtunnel.fabric.sysfs import PATTERNS, parse_sysfs
from windtunnel.fabric.topology import Topology
from windtunnel.process import describe_failure, run_command

SYSFS = Path("/sys")
_TIMEOUT_S = 60.0
_NO_TOPOLOGY = "No topology information"


def read_live_network() -> Topology:
    """Slurm's network; raises ClusterError where there is no Slurm, CommandError where it does not answer."""
    if shutil.which("scontrol") is None:
        raise ClusterError("there is no scontrol here: give a file, or go to a login node of the cluster")
    finished = run_command(["scontrol", "show", "topology"], timeout_s=_TIMEOUT_S, check=False)
    if finished.code and _NO_TOPOLOGY not in finished.stderr + finished.stdout:
        raise CommandError(describe_failure(finished))
    return parse_show(finished.stdout)


def read_live_hosts() -> Topology:
    """Every node that Slurm knows."""
    return parse_nodes_text(run_command(["scontrol", "show", "node", "-o"], timeout_s=_TIMEOUT_S).stdout)


def read_live_machine(sysfs: Path = SYSFS) -> Topology:
    """This machine: sysfs, and what nvidia-smi says besides where it works, since it alone knows NVLink."""
    found = parse_sysfs(read_sysfs(sysfs))
    if shutil.which("nvidia-smi") is None:
        return found
    finished = run_command(["nvidia-smi", "topo", "-m"], timeout_s=_TIMEOUT_S, check=False)
    matrix = parse_matrix(finished.stdout)
    if finished.code or matrix.errors:
        return found
    told = ask_nvidia_smi()
    buses = read_gpu_buses(told["rows"], told["fields"]) if "rows" in told else {}
    return complete_machine(matrix, found, buses)


def read_sysfs(root: Path) -> dict[str, str]:
    """Text by path below `root`, of the files that the parser knows; what cannot be read is left out."""
    files = {}
    for pattern in PATTERNS:
        for path in root.glob(pattern):
            try:
                files[str(path.relative_to(root))] = path.read_text(errors="replace")
            except OSError:  # a device may refuse, or be gone since it was listed
                continue
    return files
