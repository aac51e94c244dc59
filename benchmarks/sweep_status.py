"""`windtunnel status` of ten thousand finished trials: the whole process, from `python` to its last line."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import PartResult, make_row, make_rows, run_paired
from benchmarks.sweep_bed import COMPILED
from benchmarks.sweep_study import STUDY, make_trials, published_file, write_finished, write_published, write_study
from windtunnel.process import run_command
from windtunnel.records.trial import Verdict
from windtunnel.statistics import median_interval

_SMALLER = 10
_TIMEOUT_S = 120.0


def run_status(quick: bool) -> PartResult:
    """Before and after the sweep is published; the slower counts. A smaller study tells whether it is linear."""
    trials, rounds = (100, 1) if quick else (10_000, 9)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        large, small = Path(folder) / "large", Path(folder) / "small"
        write_results(small, trials // _SMALLER)
        write_results(large, trials)
        before, after, smaller = (
            f"status of {trials:,} trials, not yet published",
            f"status of {trials:,} trials, published",
            f"status of {trials // _SMALLER:,} trials, not yet published",
        )
        paired = run_paired(
            {
                before: lambda: unpublished(large, lambda: time_status(large, trials)),
                after: lambda: time_status(large, trials),
                smaller: lambda: unpublished(small, lambda: time_status(small, trials // _SMALLER)),
            },
            rounds=rounds,
            discard=0 if quick else 1,
        )
    slower = max((median_interval(paired.seconds[name]) for name in (before, after)), key=lambda found: found.median)
    growth = paired.ratio(before, smaller)
    rows = (
        *make_rows(paired),
        make_row(f"growth for {_SMALLER} times the trials", growth, "x"),
        make_row("status_10k_s", slower, "s"),
    )
    return PartResult({"status_10k_s": slower.median}, {"status_10k_s": trials}, rows)


def write_results(root: Path, trials: int) -> None:
    """A project's `results` once all trials of the study have ended."""
    plan = write_study(root, make_trials(trials))
    write_finished(root, plan)
    write_published(root, plan)


def unpublished(root: Path, side: Callable[[], float]) -> float:
    """What `side` says while the study's sweep.json is not there yet."""
    published = published_file(root)
    aside = published.rename(published.with_suffix(".aside"))
    try:
        return side()
    finally:
        aside.rename(published)


def time_status(results: Path, trials: int) -> float:
    """Wall seconds of the table, which must tell the truth."""
    argv = [sys.executable, "-m", "windtunnel.cli.main", "status", STUDY, f"--results={results}"]
    said = run_command(argv, env=COMPILED, timeout_s=_TIMEOUT_S)
    assert f"{trials} {Verdict.COMPLETED}" in said.stdout.replace(",", ""), said.stdout[:2000]
    return said.wall_s
