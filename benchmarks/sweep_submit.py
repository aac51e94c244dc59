"""Submission of a thousand trials of three shapes, ledgers and all, beyond one bare `sbatch --array` a shape."""

import json
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

from benchmarks.harness import PartResult, make_row, make_rows, run_paired
from benchmarks.sweep_bed import PARTITION, Bed, open_bed
from benchmarks.sweep_study import STUDY, features_file, make_settings, make_trials, write_study
from windtunnel.launch.run import Stop, make_context, run_trials
from windtunnel.ledger.lease import take_lease
from windtunnel.statistics import median_interval

SHAPES = 3
OURS, BARE = "our submission", "sbatch --array, one a shape"
_TIMEOUT_S = 300.0


def run_submission(quick: bool) -> PartResult:
    """Both sides submit to a partition that starts nothing meanwhile: what runs would slow them down."""
    trials, rounds = (9, 1) if quick else (1000, 7)
    # All files stay to the end: ext4 passes over every inode freed in the last minutes before it makes a file, so
    # that a side would pay for what the rounds before it removed.
    with tempfile.TemporaryDirectory(prefix="wt-") as folder, open_bed(quick=quick) as bed:
        rounds_begun = count()
        bed.run(["scontrol", "update", f"PartitionName={PARTITION}", "State=DOWN"])
        try:
            paired = run_paired(
                {
                    OURS: lambda: time_ours(bed, Path(folder) / f"round-{next(rounds_begun)}", trials),
                    BARE: lambda: time_bare(bed, trials),
                },
                rounds=rounds,
                discard=0 if quick else 1,
            )
        finally:
            bed.run(["scontrol", "update", f"PartitionName={PARTITION}", "State=UP"])
    beyond = [ours - bare for ours, bare in zip(paired.seconds[OURS], paired.seconds[BARE], strict=True)]
    overhead = median_interval(beyond)
    rows = (*make_rows(paired), make_row("submit_overhead_s", overhead, "s"))
    return PartResult({"submit_overhead_s": overhead.median}, {"submit_overhead_s": trials}, rows)


def time_ours(bed: Bed, root: Path, trials: int) -> float:
    """Seconds from a driver with its plan in hand to the last trial's job id, of jobs that are then cancelled."""
    argv = [sys.executable, "-m", "benchmarks.sweep_submit", str(root), str(trials)]
    said = bed.run(argv, timeout_s=_TIMEOUT_S).stdout
    queued = _count_queued(bed)
    _cancel_all(bed)
    assert sorted(queued.values()) == sorted(_share(trials)), f"{queued} jobs are queued, by time limit"
    return float(json.loads(said.splitlines()[-1]))


def time_bare(bed: Bed, trials: int) -> float:
    """Seconds of the bare commands, one after the other."""
    base = ["sbatch", f"--partition={PARTITION}", "--mem=64M", "--output=/dev/null", "--wrap=true"]
    argvs = [[*base, f"--time={60 + i}", f"--array=0-{tasks - 1}"] for i, tasks in enumerate(_share(trials))]
    wall_s = sum(bed.run(argv, timeout_s=_TIMEOUT_S).wall_s for argv in argvs)
    _cancel_all(bed)
    return wall_s


def submit_and_stop(root: Path, trials: int) -> float:
    """On the login host: what the driver does from the plan to the last submission."""
    plan = write_study(root, make_trials(trials, shapes=SHAPES))
    context = make_context(
        make_settings(),
        identity=plan.identity,
        features=features_file(root),
        topology=None,
        store=root,
        import_root="",
        jobs_dir=root / STUDY / "jobs",
    )
    lease, stop = take_lease(root / STUDY / ".lease", STUDY), Stop()
    submitted_at: list[float] = []

    def hear(line: str) -> None:
        if ": submitted as " in line:
            submitted_at.append(time.monotonic())
            stop.wanted = len(submitted_at) == trials

    started = time.monotonic()
    run_trials(plan.trials, context, lease=lease, stop=stop, say=hear)
    assert stop.wanted, f"{len(submitted_at)} of {trials} trials were submitted"
    return submitted_at[-1] - started


def _share(trials: int) -> list[int]:
    return list(Counter(index % SHAPES for index in range(trials)).values())


def _count_queued(bed: Bed) -> Counter[str]:
    return Counter(bed.run(["squeue", "--noheader", "--array", "--format=%l"]).stdout.split())


def _cancel_all(bed: Bed) -> None:
    bed.run(["scancel", f"--partition={PARTITION}"])
    bed.wait_until_quiet()


if __name__ == "__main__":
    print(json.dumps(submit_and_stop(Path(sys.argv[1]), int(sys.argv[2]))))
