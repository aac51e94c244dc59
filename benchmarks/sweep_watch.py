"""What a driver costs while a thousand trials run: its calls of squeue and sacct, its processor time, its memory.

The jobs are real, but only sleep. What a trial's supervisor and ranks would write meanwhile, heartbeats and metrics,
this process writes for all of them, as if from the nodes.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import PartResult, Row
from benchmarks.sweep_bed import PARTITION, Bed, open_bed, wait_for
from benchmarks.sweep_study import (
    append_metrics,
    features_file,
    make_settings,
    make_trials,
    plan_file,
    published_file,
    write_running,
    write_study,
)
from windtunnel.launch.run import run_sweep
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import BEAT_EVERY_S
from windtunnel.records.plan import Plan
from windtunnel.units import MIB

NODES = 8
BASELINE_S = 30.0
"""The baseline asks Slurm once each so many seconds."""
_METRICS_EVERY_S = 10.0
_START_TIMEOUT_S = 600.0
_COUNTED = ("squeue", "sacct", "sinfo", "scontrol", "sacctmgr", "sdiag")
_ASKS = ("squeue", "sacct")
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What a driver used from its start to the end of the watch."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    calls: dict[str, int]


def run_watch(quick: bool) -> PartResult:
    """A fresh driver finds the running trials, as after a logout, and watches them."""
    trials, seconds = (16, 5.0) if quick else (1000, 600.0)
    with open_bed(f"--nodes={NODES}", f"--cpus={-(-trials // NODES)}", quick=quick) as bed:
        if not quick:
            bed.calm()
        with tempfile.TemporaryDirectory(prefix="wt-") as folder:
            root = Path(folder)
            array = start_jobs(bed, trials, root / "started")
            plan = write_study(root, make_trials(trials))
            write_running(root, plan, {trial.id: f"{array}_{index}" for index, trial in enumerate(plan.trials)})
            cost = watch_driver(bed, root, plan, seconds)
            if quick:  # a testbed of our own takes its jobs with it, sooner than Slurm ends them
                bed.run(["scancel", array])
    return _make_result(cost, trials)


def start_jobs(bed: Bed, count: int, started: Path) -> str:
    """The id of an array whose tasks all run, and sleep; each has left a file in `started`."""
    started.mkdir()
    options = ["--mem=16M", "--output=/dev/null", "--time=60", f"--partition={PARTITION}"]
    wrap = f"--wrap=: >{started}/$SLURM_ARRAY_TASK_ID; exec sleep 3600"
    array = bed.run(["sbatch", "--parsable", f"--array=0-{count - 1}", *options, wrap]).stdout.strip()
    wait_for(lambda: len(list(started.iterdir())) == count, _START_TIMEOUT_S, f"{count} running jobs")
    return array


def watch_driver(bed: Bed, root: Path, plan: Plan, seconds: float) -> Cost:
    """Let a driver watch the plan's trials for so long, and say what it used."""
    calls = root / "calls"
    argv = bed.argv([sys.executable, "-m", "benchmarks.sweep_watch", str(root)])
    path = os.pathsep.join([str(write_counters(root / "bin", calls)), os.environ["PATH"]])
    env = {**os.environ, **bed.env(), "PATH": path}
    with (root / "driver.txt").open("w") as said:
        driver = subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        started = time.monotonic()
        try:
            _act_as_supervisors([trial_folder(root, trial.id) for trial in plan.trials], seconds)
            wall_s = time.monotonic() - started
            text = (root / "driver.txt").read_text()
            assert driver.poll() is None, f"the driver ended: {text[-2000:]}"
            cpu_s, peak_mib = read_usage(driver.pid)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    found = text.count(": already under way (")
    assert found == len(plan.trials), f"the driver found {found} of {len(plan.trials)} trials: {text[-2000:]}"
    return Cost(wall_s, cpu_s, peak_mib, read_counts(calls))


def write_counters(folder: Path, calls: Path) -> Path:
    """Commands in front of Slurm's own that note each call and become them."""
    folder.mkdir()
    for name in _COUNTED:
        real = shutil.which(name)
        if real is not None:
            (folder / name).write_text(f'#!/bin/sh\necho {name} >>"{calls}"\nexec {real} "$@"\n')
            (folder / name).chmod(0o755)
    return folder


def read_counts(calls: Path) -> dict[str, int]:
    """How often each command was called."""
    noted = calls.read_text().split() if calls.exists() else []
    return {name: noted.count(name) for name in _COUNTED}


def read_usage(pid: int) -> tuple[float, float]:
    """Processor seconds of a process and of the children it waited for, and its largest memory in MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu_s = sum(int(field) for field in fields[11:15]) / _CLOCK_TICKS
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return cpu_s, peak_kib * 1024 / MIB


def drive(root: Path) -> None:
    """On the login host: the sweep's stage, with its own defaults."""
    run_sweep(
        make_settings(),
        plan=plan_file(root),
        features=features_file(root),
        topology=None,
        store=root,
        import_root="",
        out=published_file(root),
    )


def _act_as_supervisors(folders: Sequence[TrialFolder], seconds: float) -> None:
    began = time.monotonic()
    step, metrics_at = 10, began
    while (now := time.monotonic()) < began + seconds:
        for folder in folders:
            os.utime(folder.lease / "1")
        if now >= metrics_at:
            step, metrics_at = step + 10, now + _METRICS_EVERY_S
            for folder in folders:
                append_metrics(folder, step=step)
        time.sleep(max(0.0, min(now + BEAT_EVERY_S, began + seconds) - time.monotonic()))


def _make_result(cost: Cost, trials: int) -> PartResult:
    baseline = cost.wall_s / BASELINE_S
    figures = {
        "controller_calls_ratio": sum(cost.calls[name] for name in _ASKS) / baseline,
        "controller_cpu_fraction": cost.cpu_s / cost.wall_s,
    }
    values = [
        *((f"calls of {name}", float(count), "") for name, count in cost.calls.items()),
        (f"one squeue each {BASELINE_S:.0f} s", baseline, ""),
        ("driver's processor time", cost.cpu_s, "s"),
        ("driver's wall time", cost.wall_s, "s"),
        ("driver's largest memory", cost.peak_mib, "MiB"),
        *((name, value, "") for name, value in figures.items()),
    ]
    rows = tuple(Row(name, value, value, value, unit, trials) for name, value, unit in values)
    return PartResult(figures, dict.fromkeys(figures, trials), rows)


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
