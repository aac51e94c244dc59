"""A study to interrupt: one trial that ends at once, and one long enough to be killed in the middle."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

STUDY = """# @package _global_
defaults:
  - override /data: arch_daily
  - override /features: daily
  - override /training: quick

training:
  warmup_steps: 2
  discard_steps: 2
  checkpoint_every: 20
  log_every: 5
latency:
  samples: 100
  discard: 10
sweep:
  poll_s: 3
  lost_after_s: 20
space:
  values:
    training.steps: [6, 800]
"""
DEADLINE_S = 240.0


def make_project(folder: Path, project: Path) -> Path:
    """A working directory with our conf and the study `interrupted`."""
    shutil.copytree(project / "conf", folder / "conf", ignore=shutil.ignore_patterns("local"))
    (folder / "conf/study/interrupted.yaml").write_text(STUDY)
    return folder


def list_trials(folder: Path) -> tuple[Path, Path]:
    """Folders of the short trial and of the long one."""
    plan = json.loads((folder / "results/interrupted/plan.json").read_text())["content"]
    by_steps = {trial["choices"]["training.steps"]: trial["id"] for trial in plan["trials"]}
    trials = folder / "results/trials"
    return trials / by_steps["6"], trials / by_steps["800"]


def wait_for_the_middle(folder: Path, driver_alive: Callable[[], bool]) -> None:
    """Return when the short trial is done and the long one has a checkpoint and has gone on from it."""
    deadline = time.monotonic() + DEADLINE_S
    while not _is_in_the_middle(folder):
        assert driver_alive(), "the driver ended before the middle"
        assert time.monotonic() < deadline, "no checkpoint in time"
        time.sleep(0.05)


def kill_everything(driver: int, folder: Path) -> None:
    """SIGKILL the driver's whole tree, and every process of a trial in `folder`, at one moment."""
    tree = psutil.Process(driver)
    doomed = {process.pid for process in [tree, *tree.children(recursive=True)]}
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(str(folder / "results/trials") in word for word in words):
            doomed.add(process.pid)
    for pid in doomed - {os.getpid()}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def read_outcome(trial: Path) -> dict:
    """What its DONE.json says."""
    return json.loads((trial / "DONE.json").read_text())["content"]


def _is_in_the_middle(folder: Path) -> bool:
    if not (folder / "results/interrupted/plan.json").exists():
        return False
    short, long = list_trials(folder)
    steps = [json.loads(line)["step"] for line in _lines(long / "metrics.jsonl")]
    done = (long / "DONE.json").exists()
    assert not done, "the long trial is too short for this machine"
    return (
        (short / "DONE.json").exists() and any((long / "checkpoints").glob("step-*")) and max(steps, default=0) > 25
    )


def _lines(path: Path) -> list[str]:
    # The last line may be half written.
    return path.read_text().split("\n")[:-1] if path.exists() else []
