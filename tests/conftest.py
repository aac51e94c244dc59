"""What every test shares: where the project and the market data beside it are, and what a marker needs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

# Before torch loads: with more threads than cores, small models take ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"

NEEDS = {
    "mpi": lambda: None if _find_mpiexec() else "no mpiexec on PATH or in this environment",
    "slurm": lambda: None if _find_daemon("slurmctld") else "no slurmctld: run make system-deps",
    "shared": lambda: None if SHARED.is_dir() else "no ../shared beside the project",
    "browser": lambda: None if shutil.which("chromium") else "no chromium on PATH",
    "gpu": lambda: None if Path("/dev/nvidia0").exists() else "no GPU",
}


def _find_daemon(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _find_mpiexec() -> str | None:
    beside = Path(sys.executable).parent  # where PyPI's MPICH puts its own
    return shutil.which("mpiexec", path=f"{beside}:{os.environ.get('PATH', '')}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {name: check() for name, check in NEEDS.items()}
    for item in items:
        for name, reason in reasons.items():
            if reason and item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def project_dir() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Real market data beside the project."""
    return SHARED
