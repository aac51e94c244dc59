"""What faults cost and cannot do: to files, within a save, on a full disk, to whole trials at any moment."""

from benchmarks.faults_causes import run_causes
from benchmarks.faults_corruption import run_corruption
from benchmarks.faults_crash import run_crash_points
from benchmarks.faults_disk import run_disk_full
from benchmarks.faults_goodput import run_goodput
from benchmarks.faults_kills import run_kills
from benchmarks.faults_matrix.run import run_matrix
from benchmarks.faults_recovery import run_recovery
from benchmarks.faults_soak import run_soak
from benchmarks.faults_stale import run_stale
from benchmarks.faults_stall import run_stall
from benchmarks.harness import Part

_FORMAT = ("checkpoints", "artifacts.py", "storage.py", "benchmarks/faults_state.py")

ON_SLURM = ("causes", "recovery", "soak")
"""Parts that need a testbed also in a quick run, and bring one of their own up where there is none."""

PARTS = (
    Part(
        name="corruption",
        figures=("corruption_found_fraction",),
        measures=(*_FORMAT, "benchmarks/faults_corruption.py"),
        run=run_corruption,
    ),
    Part(
        name="crash-points",
        figures=("crash_points_recovered_fraction",),
        measures=(*_FORMAT, "benchmarks/faults_crash.py", "benchmarks/faults_crash_saver.py", "benchmarks/native"),
        run=run_crash_points,
    ),
    Part(
        name="disk-full",
        figures=("disk_full_kept_fraction",),
        measures=(*_FORMAT, "benchmarks/faults_disk.py"),
        run=run_disk_full,
    ),
    Part(
        name="stall",
        figures=("stall_copy_ratio", "stall_torch_save_ratio"),
        measures=(*_FORMAT, "benchmarks/faults_stall.py"),
        run=run_stall,
    ),
    Part(
        name="bit-exact",
        figures=("bit_exact_fraction",),
        measures=("checkpoints", "training", "artifacts.py", "benchmarks/faults_kills.py"),
        run=run_kills,
        wanted_cases=200,
    ),
    Part(
        name="goodput",
        figures=("goodput_sum_error",),
        measures=("records/goodput.py", "ledger", "training", "attempt", "benchmarks/faults_goodput.py"),
        run=run_goodput,
    ),
    Part(
        name="causes",
        figures=("causes_right_fraction", "requeued_after_scancel"),
        measures=("attempt", "ledger", "slurm", "launch", "testbed", "benchmarks/faults_causes.py"),
        run=run_causes,
        wanted_cases=20,  # counted by the cancelled, of which a run has the fewest
    ),
    Part(
        name="stale",
        figures=("stale_publishes",),
        measures=(
            *_FORMAT,
            "attempt",
            "ledger/lease.py",
            "training",
            "benchmarks/faults_soak_model.py",
            "benchmarks/faults_stale.py",
            "benchmarks/faults_stale_slurm.py",
            "benchmarks/faults_stale_writer.py",
            "benchmarks/native",
        ),
        run=run_stale,
    ),
    Part(
        name="recovery",
        figures=("recovery_in_allocation_s", "recovery_requeue_extra_s", "recovery_successor_s"),
        measures=(
            "attempt",
            "checkpoints",
            "ledger",
            "training",
            "slurm",
            "testbed",
            "benchmarks/faults_recovery.py",
        ),
        run=run_recovery,
    ),
    Part(
        name="soak",
        figures=("soak_bit_identical", "soak_goodput_gap"),
        measures=(
            "attempt",
            "checkpoints",
            "training",
            "launch",
            "ledger",
            "slurm",
            "records/goodput.py",
            "artifacts.py",
            "storage.py",
            "benchmarks/faults_soak.py",
            "benchmarks/faults_soak_bed.py",
            "benchmarks/faults_soak_faults.py",
            "benchmarks/faults_soak_model.py",
            "benchmarks/faults_soak_share.py",
        ),
        run=run_soak,
        wanted_cases=500,
    ),
    Part(
        name="matrix",
        figures=(),
        measures=(*_FORMAT, "training", "ledger/lease.py", "benchmarks/faults_matrix", "envs/matrix.txt"),
        run=run_matrix,
    ),
)
