"""What faults cost and cannot do: to files, within a save, on a full disk, to whole trials at any moment."""

from benchmarks.faults_corruption import run_corruption
from benchmarks.faults_crash import run_crash_points
from benchmarks.faults_disk import run_disk_full
from benchmarks.faults_kills import run_kills
from benchmarks.faults_stall import run_stall
from benchmarks.harness import Part

_FORMAT = ("checkpoints", "artifacts.py", "storage.py", "benchmarks/faults_state.py")

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
)
