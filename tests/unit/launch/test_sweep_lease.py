"""A sweep's lease while its driver is busy: here in the pre-flight, with a `scontrol` that takes its time."""

import os
from pathlib import Path

import pytest

from fake_driver import run_study, write_study
from fake_trials import make_trial
from windtunnel.errors import BusyError, ClusterError
from windtunnel.ledger import lease
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings

SLURM = ClusterSettings(kind="slurm", partition="cpu")
# Made older than `early`, the lease's file is renewed by nobody but a heartbeat.
AWAITS_A_BEAT = """
touch -d @2 {root}/early; touch -d @1 {root}/study/.lease/1
for i in $(seq 400); do
    [ {root}/study/.lease/1 -nt {root}/early ] && touch {root}/beaten && break
    sleep 0.05
done
exit 1
"""
LOSES_THE_LEASE = "touch {root}/study/.lease/2; exit 1"
SBATCH = """
case "$*" in
*--test-only*) echo "sbatch: Job 4 to start at 2026-11-30T15:50:09 using 1 processors on nodes n0" >&2 ;;
*) touch {root}/submitted; exit 1 ;;
esac
"""


def run_with(root: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Run a sweep with stand-ins for Slurm's commands, and a heartbeat that is never long in coming."""
    monkeypatch.setattr(lease, "BEAT_EVERY_S", 0.001)
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    for name, text in {"sacctmgr": "exit 1", "squeue": "", "sacct": "exit 1", **scripts}.items():
        (root / name).write_text(f"#!/bin/sh\n{text.format(root=root)}\n")
        (root / name).chmod(0o755)
    settings = SweepStageSettings(study="made_up", cluster=SLURM, sweep=SweepSettings())
    write_study(root, [make_trial("a", cluster=SLURM)], settings)
    run_study(root)


def test_a_driver_that_is_busy_still_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match="cannot be submitted"):
        run_with(tmp_path, monkeypatch, scontrol=AWAITS_A_BEAT, sbatch="exit 1")
    assert (tmp_path / "beaten").exists()


def test_a_driver_that_lost_its_study_while_busy_submits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BusyError, match="study made_up was taken over by another process"):
        run_with(tmp_path, monkeypatch, scontrol=LOSES_THE_LEASE, sbatch=SBATCH)
    assert not (tmp_path / "submitted").exists()
