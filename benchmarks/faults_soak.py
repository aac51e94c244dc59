"""Trials side by side under a storm of mixed faults: their last states against runs without, their time against Daly.

Slurm, its jobs, the driver, supervisors and ranks are real; a training step waits as it would for an accelerator, so
that two processors carry six nodes. Each trial is struck by a Poisson process of its own. Whatever ends a trial's
job, only the project's own driver brings it back; a driver that has ended is started again by the same command.
"""

import math
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults_kills import digest_trial
from benchmarks.faults_recovery import read_place
from benchmarks.faults_soak_bed import LOG_EVERY, Driver, Size, Soaked, small_disks, write_reference, write_soaked
from benchmarks.faults_soak_faults import FAULTS, ON_A_DISK_OF_ITS_OWN, Fault, Hit, Storm
from benchmarks.faults_soak_share import Toll, add_tolls, find_restart_s, model_share, read_toll
from benchmarks.harness import ROOT, PartResult, Row, make_share_row
from benchmarks.sweep_bed import open_bed, wait_for
from windtunnel.ledger.log import read_events

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from toy_trial import run_ranks

NODES, CPUS = 6, 4
FULL = Size(ranks=(1, 1, 2, 1, 1, 2, 1, 1), steps=3000, every=40, pace_s=0.2)
QUICK = Size(ranks=(1, 2), steps=100, every=10, pace_s=0.15)
_MEAN_S, _QUICK_MEAN_S = 60.0, 4.0
_MOST, _QUICK_MOST = 1000, 1
"""Faults a trial."""
_QUICK_FAULTS = ("a rank killed", "all ranks killed", "the supervisor killed", "SIGTERM to a rank")
_TICK_S, _TEND_S = 0.05, 1.0
_USUAL_START_S, _START_TIMEOUT_S = 60.0, 600.0
_TIMEOUT_S, _QUICK_TIMEOUT_S = 2400.0, 240.0


@dataclass(frozen=True)
class Fate:
    """What became of a trial."""

    same: bool
    toll: Toll | None
    """None of one that was not brought to its end."""


@dataclass(frozen=True)
class Found:
    """A whole run."""

    hits: tuple[Hit, ...]
    fates: tuple[Fate, ...]
    damaged: int
    breaks: int
    every: int
    wall_s: float


def run_soak(quick: bool) -> PartResult:
    """Eight trials in full, struck some 120 times; two in short, each struck once."""
    size, mean_s, most = (QUICK, _QUICK_MEAN_S, _QUICK_MOST) if quick else (FULL, _MEAN_S, _MOST)
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        root = Path(folder)
        trials = write_soaked(root, size)
        wanted = {ranks: run_alone(root, size, ranks) for ranks in sorted(set(size.ranks))}
        options = (f"--nodes={NODES}", f"--cpus={CPUS}")
        # A testbed sees what was mounted before it began.
        with small_disks([] if quick else trials) as limited, open_bed(*options, quick=quick) as bed:
            driver = Driver(bed, root, trials, pace_s=size.pace_s)
            chance = random.Random(seed)
            storm = Storm(bed, trials, driver, chance=chance, mean_s=mean_s, most=most, every=size.every)
            faults = choose_faults(quick=quick, limited=limited)
            timeout_s, usual_s = (_QUICK_TIMEOUT_S, math.inf) if quick else (_TIMEOUT_S, _USUAL_START_S)
            wall_s = weather(storm, driver, faults, timeout_s=timeout_s, usual_start_s=usual_s)
            fates = [
                judge(trial, wanted[trial.ranks], [hit.at for hit in storm.hits if hit.trial == number and hit.kills])
                for number, trial in enumerate(trials)
            ]
    print(f"faults: the soak's seed was {seed}, the driver was there for {wall_s:.0f} s", flush=True)
    return make_result(Found(tuple(storm.hits), tuple(fates), storm.damaged, driver.breaks, size.every, wall_s))


def choose_faults(*, quick: bool, limited: bool) -> dict[str, tuple[int, Fault]]:
    """Those of a quick run are over soon; a full disk needs a disk of the trial's own."""
    names = [name for name in FAULTS if not quick or name in _QUICK_FAULTS]
    return {name: FAULTS[name] for name in names if (limited and not quick) or name not in ON_A_DISK_OF_ITS_OWN}


def run_alone(root: Path, size: Size, ranks: int) -> dict[str, str]:
    """What such a trial's state and losses are without any fault."""
    folder = write_reference(root, size, ranks)
    assert run_ranks(folder, ranks=ranks) == [0] * ranks, f"the run without faults failed: {folder}"
    return digest_trial(folder, steps=size.steps, log_every=LOG_EVERY)


def weather(
    storm: Storm, driver: Driver, faults: dict[str, tuple[int, Fault]], *, timeout_s: float, usual_start_s: float
) -> float:
    """Once all trials train, strike until all are done, or time is up; the seconds that it took."""
    began, tended = time.monotonic(), 0.0
    driver.start()
    try:
        wait_for(lambda: all(read_place(trial.folder).step for trial in storm.trials), _START_TIMEOUT_S, "all trials")
        # Where others use the processors, a trial must still get from one checkpoint to the next between two faults.
        storm.begin(slow_down=max(1.0, (time.monotonic() - began) / usual_start_s))
        while time.monotonic() - began < timeout_s:
            storm.tick(faults)
            if time.monotonic() - tended > _TEND_S:
                if not driver.tend():
                    break
                tended = time.monotonic()
            time.sleep(_TICK_S)
    finally:
        storm.end()
        driver.kill()
    return time.monotonic() - began


def judge(trial: Soaked, wanted: dict[str, str], killed_at: Sequence[float]) -> Fate:
    """Whether a trial that was killed at these moments ended as the one without faults, and what it had to pay."""
    name = trial.folder.path.name
    if not trial.done:
        print(f"faults: trial {name} was not brought to its end: {read_events(trial.folder.path)[-6:]}", flush=True)
        return Fate(False, None)
    found = digest_trial(trial.folder.path, steps=trial.steps, log_every=LOG_EVERY)
    differ = sorted(key for key in {**wanted, **found} if wanted.get(key) != found.get(key))
    if differ:
        print(f"faults: of trial {name} there differ {', '.join(differ)}", flush=True)
    toll = read_toll(trial.folder, steps=trial.steps, killed_at=killed_at, now=time.time())
    return Fate(not differ, toll)


def make_result(found: Found) -> PartResult:
    """The share of faults whose trial ended as without them, and how far its time is from the model's."""
    tolls = [fate.toll for fate in found.fates if fate.toll is not None]
    toll = add_tolls(tolls)
    model = model_share(toll, interval_steps=found.every, damaged=found.damaged)
    same = [found.fates[hit.trial].same for hit in found.hits]
    rows = [*make_kind_rows(found), *make_time_rows(found, toll, model)]
    figures = {"soak_bit_identical": sum(same) / len(same), "soak_goodput_gap": abs(toll.share - model)}
    return PartResult(figures, dict.fromkeys(figures, len(same)), tuple(rows))


def make_kind_rows(found: Found) -> list[Row]:
    kinds = sorted({hit.kind for hit in found.hits})
    struck = {kind: [found.fates[hit.trial].same for hit in found.hits if hit.kind == kind] for kind in kinds}
    return [make_share_row(f"soak: as without {kind}", same) for kind, same in struck.items()]


def make_time_rows(found: Found, toll: Toll, model: float) -> list[Row]:
    count = len(found.hits)
    values: Sequence[tuple[str, float, str]] = (
        ("productive share, measured", toll.share, ""),
        ("productive share, by the model", model, ""),
        ("share of training again", (toll.up_s - toll.productive_s - sum(toll.stalls_s)) / toll.wall_s, ""),
        ("share of time down", toll.down_s / toll.wall_s, ""),
        ("a restart", find_restart_s(toll), "s"),
        ("faults a minute", 60.0 * count / found.wall_s, ""),
        ("starts a trial", toll.starts / len(found.fates), ""),
        ("ends without a warning, of all starts", toll.unwarned / toll.starts, ""),
        ("checkpoints damaged, a fault", found.damaged / count, ""),
        ("trials that the breaker stopped, a fault", found.breaks / count, ""),
    )
    return [Row(f"soak: {name}", value, value, value, unit, count) for name, value, unit in values]
