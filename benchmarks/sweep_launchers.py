"""Our Hydra launcher against hydra-submitit-launcher: the same application, overrides, partition and resources."""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT, PartResult, Row, make_row, make_rows, run_paired
from benchmarks.sweep_bed import PARTITION, Bed, open_bed
from windtunnel.errors import InputFileError

APP = ROOT / "benchmarks" / "sweep_app.py"
RETURNED = "returned.json"
OURS, THEIRS = "our launcher", "hydra-submitit-launcher"
_LAUNCHERS = {
    OURS: (
        "hydra/launcher=windtunnel",
        "hydra.launcher.kind=slurm",
        f"hydra.launcher.partition={PARTITION}",
        "hydra.launcher.memory=1G",
        "hydra.launcher.time=10",
    ),
    THEIRS: (
        "hydra/launcher=submitit_slurm",
        f"hydra.launcher.partition={PARTITION}",
        "hydra.launcher.mem_gb=1",
        "hydra.launcher.timeout_min=10",
    ),
}
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Multirun:
    """A sweep that ended: its wall time, and the values that came back of it."""

    wall_s: float
    values: tuple[int, ...]


def run_walls(quick: bool) -> PartResult:
    """Wall time of the whole command, from `python` to its end, with all results back."""
    _require_theirs()
    trials, rounds = (3, 1) if quick else (64, 5)
    with open_bed(quick=quick) as bed:
        paired = run_paired(
            {launcher: lambda launcher=launcher: _time_launcher(bed, launcher, trials) for launcher in _LAUNCHERS},
            rounds=rounds,
            discard=0 if quick else 1,
        )
    ratio = paired.ratio(OURS, THEIRS)
    rows = (*make_rows(paired), make_row("launcher_wall_ratio", ratio, "x"))
    return PartResult({"launcher_wall_ratio": ratio.median}, {"launcher_wall_ratio": ratio.count}, rows)


def run_kept(quick: bool) -> PartResult:
    """Trials kill themselves by SIGKILL; what counts is which values a sweeper then gets from the launcher."""
    _require_theirs()
    trials, killed = (3, (1,)) if quick else (10, (2, 5, 7))
    unharmed = tuple(trial for trial in range(trials) if trial not in killed)
    # Side by side: nothing is timed, and both wait long for what does not come.
    with open_bed(quick=quick) as bed, ThreadPoolExecutor() as pool:
        ends = pool.map(lambda launcher: run_multirun(bed, launcher, trials, killed), _LAUNCHERS)
        kept = {
            launcher: len(set(ended.values) & set(unharmed)) / len(unharmed)
            for launcher, ended in zip(_LAUNCHERS, ends, strict=True)
        }
    rows = tuple(Row(f"results kept, {name}", part, part, part, "", len(unharmed)) for name, part in kept.items())
    return PartResult({"results_kept_fraction": kept[OURS]}, {"results_kept_fraction": len(unharmed)}, rows)


def run_multirun(bed: Bed, launcher: str, trials: int, killed: Sequence[int] = ()) -> Multirun:
    """One multirun of the application on the testbed's login host. With killed trials it may fail."""
    numbers = ",".join(str(number) for number in range(trials))
    words = [sys.executable, str(APP), "--multirun", "hydra/sweeper=recorder", f"hydra.sweeper.returned={RETURNED}"]
    words += _LAUNCHERS[launcher]
    # Both look at Slurm soon; by default ours asks each 30 s, theirs from 2 s up to 600 s.
    words += ["hydra.launcher.poll_s=5"] if launcher == OURS and killed else []
    words += [f"killed=[{','.join(map(str, killed))}]", f"trial={numbers}"]
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        ended = bed.run([*words, "hydra.sweep.dir=runs"], cwd=Path(folder), timeout_s=_TIMEOUT_S, check=not killed)
        returned = Path(folder) / "runs" / RETURNED
        values = json.loads(returned.read_text()) if returned.exists() else []
    return Multirun(ended.wall_s, tuple(values))


def _require_theirs() -> None:
    if importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None:
        raise InputFileError("hydra-submitit-launcher is not installed: `make bench` installs it with envs/test.txt")


def _time_launcher(bed: Bed, launcher: str, trials: int) -> float:
    ended = run_multirun(bed, launcher, trials)
    assert ended.values == tuple(range(trials)), f"{launcher} gave {ended.values}"
    bed.wait_until_quiet()
    return ended.wall_s
