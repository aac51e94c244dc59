"""The sides of the matrix: which program trains, where its newest state lies, and how the packages come here."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from benchmarks.faults_matrix import ours
from benchmarks.faults_matrix.journal import Order
from benchmarks.faults_matrix.model import BATCH, SAMPLES
from benchmarks.harness import ROOT
from windtunnel.errors import CommandError
from windtunnel.process import run_command

PINS = ROOT / "envs" / "matrix.txt"
PACKAGES = ROOT / "build" / "matrix"
"""Installed beside the environment, which stays as it is; torch is the environment's own."""
JOB = {
    "SLURM_JOB_ID": "41",
    "SLURM_JOB_NAME": "train",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_JOB_NODELIST": "localhost",
    "SLURM_NTASKS": "1",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
}
"""What Slurm sets in a job of one task."""


@dataclass(frozen=True)
class Side:
    """Who trains."""

    name: str
    module: str
    packages: tuple[str, ...]
    find_newest: Callable[[Order], Path]
    """The file that a resume reads most of."""
    saves_at: str = "13:KILL"
    """Faults of an attempt that is to leave a state of step 10 and to end: killed, or told by the signal at which it
    saves where it saves at nothing else."""
    epoch_steps: int = SAMPLES // BATCH
    prepare: Callable[[Order], None] = lambda _: None
    environment: tuple[tuple[str, str], ...] = ()


def find_lightning(order: Order) -> Path:
    return order.checkpoints / "last.ckpt"


def find_dcp(order: Order) -> Path:
    folder = sorted(path.parent for path in order.checkpoints.glob("*/.metadata"))[-1]
    return max(folder.glob("*.distcp"), key=lambda path: path.stat().st_size)


def find_submitit(order: Order) -> Path:
    return sorted(order.checkpoints.glob("*_submitted.pkl"))[-1]


def find_ours(order: Order) -> Path:
    return max(sorted(order.checkpoints.glob("step-*"))[-1].glob("*.bin"), key=lambda path: path.stat().st_size)


SUBMITIT_ENV = (("SUBMITIT_EXECUTOR", "slurm"), *JOB.items())
LIGHTNING = Side(
    "Lightning",
    "benchmarks.faults_matrix.lightning",
    ("pytorch-lightning", "torchdata", "torch"),
    find_lightning,
)
SUBMITIT = Side(
    "submitit",
    "benchmarks.faults_matrix.submitit",
    ("submitit",),
    find_submitit,
    saves_at="11:USR2",
    environment=SUBMITIT_ENV,
)
DCP = Side("DCP", "benchmarks.faults_matrix.dcp", ("torch",), find_dcp)
OURS = Side(
    "ours",
    "benchmarks.faults_matrix.ours",
    ("windtunnel",),
    find_ours,
    epoch_steps=ours.EPOCH_STEPS,
    prepare=ours.prepare,
)
SIDES = (LIGHTNING, SUBMITIT, DCP, OURS)


def install_packages() -> str:
    """Install what only the matrix needs, unless it is there; why it could not be, or nothing."""
    stamp = PACKAGES / f".{hashlib.sha256(PINS.read_bytes()).hexdigest()[:16]}"
    if stamp.exists():
        return ""
    shutil.rmtree(PACKAGES, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PACKAGES), "-r", str(PINS)]
    try:
        run_command(pip, timeout_s=600)
    except CommandError as error:
        return str(error).splitlines()[-1].strip()
    stamp.touch()
    return ""


def name_versions(side: Side) -> str:
    """The side's packages as they are installed."""
    found = {each.metadata["Name"].lower().replace("_", "-"): each for each in _list_distributions()}
    versions = [f"{name} {found[name].version}" for name in side.packages if name in found]
    return ", ".join(versions)


def has_packages(side: Side) -> bool:
    """Whether all of them are installed."""
    found = {each.metadata["Name"].lower().replace("_", "-") for each in _list_distributions()}
    return set(side.packages) <= found


def python_path() -> str:
    """For the programs: the matrix' packages last, so that none hides one of the environment."""
    return os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(PACKAGES)])


def _list_distributions() -> list[Distribution]:
    return list(distributions(path=[str(PACKAGES), *sys.path]))
