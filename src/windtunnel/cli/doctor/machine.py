"""This machine: Python, torch and MPI by their versions, and whether a driver may live here."""

import os
import platform
import resource
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from windtunnel.cli.doctor.findings import Finding, fail, warn
from windtunnel.errors import CommandError
from windtunnel.process import run_command

AREA = "machine"
_LOGIND = (Path("/etc/systemd/logind.conf"), Path("/etc/systemd/logind.conf.d"))
_DRIVER_CPU_S = 3600
_MPI_TIMEOUT_S = 10


@dataclass(frozen=True)
class MachineFacts:
    """What this machine says of itself."""

    python: str
    executable: str
    torch: str
    """Empty where there is none."""
    torch_wanted: str
    """The versions that windtunnel takes."""
    mpi: str
    """First line of `mpiexec --version`; empty without one."""
    cpu_limit_s: int | None
    """CPU seconds after which a process is killed; None for no limit."""
    kills_at_logout: bool


def read_machine() -> MachineFacts:
    """The facts of this machine; torch is not imported."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CPU)
    return MachineFacts(
        python=platform.python_version(),
        executable=sys.executable,
        torch=_read_version("torch"),
        torch_wanted=_read_wanted("torch"),
        mpi=_read_mpi(),
        cpu_limit_s=None if soft == resource.RLIM_INFINITY else soft,
        kills_at_logout=read_kills_at_logout([text for path in _LOGIND for text in _read_texts(path)]),
    )


def judge_machine(facts: MachineFacts, *, slurm: bool) -> list[Finding]:
    """The findings of a machine; with `slurm` it is a login node, where a driver stays for hours."""
    findings = [
        Finding(AREA, "Python", f"{facts.python} ({facts.executable})"),
        _judge_torch(facts),
        _judge_mpi(facts),
    ]
    return findings + (_judge_driver(facts) if slurm else [])


def read_kills_at_logout(texts: Sequence[str]) -> bool:
    """Whether systemd ends a user's processes at logout, from the texts of logind.conf; the last one counts."""
    lines = [line.strip().replace(" ", "") for text in texts for line in text.splitlines()]
    told = [line.partition("=")[2].lower() for line in lines if line.startswith("KillUserProcesses=")]
    return bool(told) and told[-1] in ("yes", "true", "1", "on")


def _judge_torch(facts: MachineFacts) -> Finding:
    if not facts.torch:
        remedy = "Load the site's torch first, then install.py: it keeps that one (docs/cluster.md)."
        return fail(AREA, "torch", "none", "nothing can be trained.", remedy)
    wanted = Requirement(f"torch{facts.torch_wanted}").specifier
    if not wanted.contains(facts.torch, prereleases=True):
        remedy = f"Install into an environment with torch {wanted}."
        return fail(AREA, "torch", facts.torch, f"windtunnel takes torch {wanted}.", remedy)
    return Finding(AREA, "torch", facts.torch)


def _judge_mpi(facts: MachineFacts) -> Finding:
    if not facts.mpi:
        effect = "ingest runs on one rank, and programs with workload.start=mpiexec do not start."
        return warn(AREA, "MPI", "no mpiexec on PATH", effect, "Load the site's MPI module before starting a study.")
    return Finding(AREA, "MPI", facts.mpi)


def _judge_driver(facts: MachineFacts) -> list[Finding]:
    remedy = "Start it as a job: windtunnel sweep STUDY --driver=sbatch."
    if facts.cpu_limit_s is not None and facts.cpu_limit_s < _DRIVER_CPU_S:
        found = f"processes are killed after {facts.cpu_limit_s} s of CPU time"
        return [warn(AREA, "driver", found, "a long sweep's driver would be killed.", remedy)]
    if facts.kills_at_logout:
        return [warn(AREA, "driver", "KillUserProcesses=yes", "a driver ends at logout, --detach or not.", remedy)]
    return [Finding(AREA, "driver", "may stay on this node after logout")]


def _read_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _read_wanted(name: str) -> str:
    try:
        needs = [Requirement(text) for text in requires("windtunnel") or []]
    except PackageNotFoundError:
        return ""
    return next((str(need.specifier) for need in needs if need.name == name), "")


def _read_mpi() -> str:
    beside = Path(sys.executable).parent
    found = shutil.which("mpiexec", path=f"{os.environ.get('PATH', os.defpath)}:{beside}")
    if found is None:
        return ""
    try:
        said = run_command([found, "--version"], timeout_s=_MPI_TIMEOUT_S, check=False)
    except CommandError:
        return f"{found}, which does not answer"
    lines = [
        " ".join(line.split())
        for line in (said.stdout + said.stderr).splitlines()
        if "ersion" in line or "Open MPI" in line
    ]
    return f"{lines[0]} ({found})" if lines else found


def _read_texts(path: Path) -> list[str]:
    files = sorted(path.glob("*.conf")) if path.is_dir() else [path]
    try:
        return [file.read_text(errors="replace") for file in files if file.is_file()]
    except OSError:
        return []
