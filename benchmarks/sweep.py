"""What a sweep costs: its launcher, its submission, its driver, its status; and what it keeps when trials are killed.

Each part has a testbed of its own. In full it takes some 25 minutes, 10 of which a driver only watches.
"""

from benchmarks.harness import Part
from benchmarks.sweep_launchers import run_kept, run_walls
from benchmarks.sweep_status import run_status
from benchmarks.sweep_submit import run_submission
from benchmarks.sweep_watch import run_watch

_LAUNCHER = (
    "../hydra_plugins",
    "launch",
    "slurm",
    "benchmarks/sweep_launchers.py",
    "benchmarks/sweep_app.py",
    "benchmarks/sweep_bed.py",
)
_DRIVER = ("launch", "ledger", "slurm", "artifacts.py", "benchmarks/sweep_study.py", "benchmarks/sweep_bed.py")

PARTS = (
    Part(name="launchers", figures=("launcher_wall_ratio",), measures=_LAUNCHER, run=run_walls),
    Part(
        name="submit",
        figures=("submit_overhead_s",),
        measures=(*_DRIVER, "benchmarks/sweep_submit.py"),
        run=run_submission,
    ),
    Part(
        name="status",
        figures=("status_10k_s",),
        measures=("cli", "launch", "ledger", "settings", "benchmarks/sweep_study.py", "benchmarks/sweep_status.py"),
        run=run_status,
    ),
    Part(name="kept", figures=("results_kept_fraction",), measures=_LAUNCHER, run=run_kept),
    Part(
        name="watch",
        figures=("controller_calls_ratio", "controller_cpu_fraction"),
        measures=(*_DRIVER, "benchmarks/sweep_watch.py"),
        run=run_watch,
    ),
)
