"""Eight files by two MPI ranks against one, each rank on a core of its own: what more ranks bring."""

import gzip
import os
import random
import re
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import PartResult, make_row, make_rows, run_paired
from windtunnel.comm.mpi import find_mpiexec
from windtunnel.process import run_command

FILES = 8
ROWS = 250_000
QUICK_ROWS = 2_000
ROUNDS = 9
_FIRST_MS = 1_700_000_000_000
PROGRAM = """
import os, sys, time
from pathlib import Path
os.environ["POLARS_MAX_THREADS"] = "1"
from windtunnel.comm.detect import detect_comm
comm = detect_comm()
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cores[comm.rank % len(cores)]})  # one core, so that no rank's second thread has another
from windtunnel.ingest.run import run_ingest
from windtunnel.settings.data import DataSettings
import polars
files = tuple(str(path) for path in sorted(Path(sys.argv[1]).glob("*.csv.gz")))
settings = DataSettings(dataset="d", source="delimited", files=files)
comm.barrier()
started = time.perf_counter()
run_ingest(settings, out=Path(sys.argv[2]) / "MANIFEST.json", comm=comm)
comm.barrier()
if comm.rank == 0:
    print(f"took {time.perf_counter() - started:.6f} s", flush=True)
"""


def run_ranks(quick: bool) -> PartResult:
    """Seconds from the first rank's start of work to the last one's end; starting MPI and imports are outside."""
    with tempfile.TemporaryDirectory(prefix="wt-") as name:
        folder = Path(name)
        make_files(folder, QUICK_ROWS if quick else ROWS)
        paired = run_paired(
            {"1 rank": lambda: time_ranks(folder, 1), "2 ranks": lambda: time_ranks(folder, 2)},
            rounds=1 if quick else ROUNDS,
            discard=0 if quick else 1,
        )
    speedup = paired.ratio("1 rank", "2 ranks")
    rows = (*make_rows(paired), make_row("mpi_speedup", speedup, "x"))
    return PartResult({"mpi_speedup": speedup.median}, {"mpi_speedup": speedup.count}, rows)


def make_files(folder: Path, rows: int) -> None:
    """Quotes in ms epochs, gzip, all of a size."""
    for number in range(FILES):
        generator = random.Random(number)
        lines = ["ts,bid,bid_size,ask,ask_size,exchange"]
        price = 100.0
        for i in range(rows):
            price += generator.gauss(0, 0.01)
            sizes = generator.randrange(1, 900), generator.randrange(1, 900)
            lines.append(f"{_FIRST_MS + 7 * i},{price:.2f},{sizes[0]},{price + 0.01:.2f},{sizes[1]},{'PQNZ'[i % 4]}")
        (folder / f"f{number}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode(), 1))


def time_ranks(folder: Path, ranks: int) -> float:
    """Seconds that rank 0 tells."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        argv = [*find_mpiexec(), "-n", str(ranks), sys.executable, "-c", PROGRAM, str(folder), out]
        env = [f"{key}={value}" for key, value in os.environ.items() if not key.startswith(("OMPI_", "PMI"))]
        told = run_command(["env", "-i", *env, *argv], timeout_s=600).stdout
    found = re.search(r"took ([\d.]+) s", told)
    assert found is not None, told
    return float(found[1])
