"""Random windows a second: ours in memory and beyond it, against `index_select`, plain decompression, and h5py.

The shard is packed by shuffle and Zstd level 1 with HDF5's checksum, 32 windows of 128 x 40 float32 a chunk.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.harness import ROOT, Paired, Part, PartResult, Row, make_row, make_rows, run_paired
from benchmarks.loader_data import BATCH, FIELD, WINDOW_ROWS, Made, make_dataset, make_plain_side, make_select_side
from windtunnel.device.cpu import count_cpus
from windtunnel.process import run_command
from windtunnel.shards.dataset import make_loader, open_dataset
from windtunnel.shards.loader import Loader, Position, RankShare
from windtunnel.shards.windows import place_windows

WINDOWS = 40_000
QUICK_WINDOWS = 2_000
ROUNDS = 9
BUFFER_SHARE = 0.08
"""Of the data, each of two buffers."""
MOST_RSS_SHARE = 0.25
_SEED = 1


def run_memory(quick: bool) -> PartResult:
    """All windows in memory, from the second epoch on."""
    import torch

    torch.set_num_threads(count_cpus())
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        made = make_dataset(Path(folder), QUICK_WINDOWS if quick else WINDOWS)
        dataset = open_dataset(made.manifest, ["features"])
        windows_ntc = torch.from_numpy(dataset.store.load("features", threads=count_cpus()))
        sides = {
            "ours": _make_side(_make_loader(made, "global"), time.perf_counter),
            "index_select": make_select_side(windows_ntc.view(made.windows, WINDOW_ROWS, -1), time.perf_counter),
            "DataLoader over h5py": make_plain_side(made, time.perf_counter),
        }
        paired = run_paired(sides, rounds=1 if quick else ROUNDS)
    return _conclude(
        paired,
        {
            "memory_gather_fraction": ("index_select", "ours"),
            "naive_h5py_speedup_memory": ("DataLoader over h5py", "ours"),
        },
    )


def run_streaming(quick: bool) -> PartResult:
    """Buffered shuffle in a process of its own, whose memory is watched; raises unless it stays below a quarter."""
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        made = make_dataset(Path(folder), QUICK_WINDOWS if quick else WINDOWS)
        program = "import sys; from benchmarks.loader import stream; stream(sys.argv[1:])"
        argv = [sys.executable, "-c", program, str(made.manifest), str(made.windows), str(1 if quick else ROUNDS)]
        told = json.loads(run_command(argv, timeout_s=900, cwd=ROOT).stdout.splitlines()[-1])
    share = told["peak_bytes"] / made.bytes
    assert quick or share <= MOST_RSS_SHARE, f"memory grew by {share:.2f} of the data, above {MOST_RSS_SHARE}"
    paired = Paired({name: tuple(values) for name, values in told["seconds"].items()})
    return _conclude(
        paired,
        {
            "streaming_fraction": ("every chunk unpacked once", "ours, buffered"),
            "naive_h5py_speedup_streaming": ("DataLoader over h5py", "ours, buffered"),
        },
        Row("peak memory above start, of the data", share, share, share, "", 1),
    )


def stream(argv: list[str]) -> None:
    """The process of `run_streaming`: prints seconds a thousand windows of each side, and how far memory grew."""
    made = Made(Path(argv[0]), int(argv[1]), 0)
    dataset = open_dataset(made.manifest, ["features"])
    ours = _make_side(_make_loader(made, "buffered"), time.perf_counter)
    start_bytes = _read_memory("VmRSS")

    def unpack() -> float:
        started = time.perf_counter()
        dataset.store.unpack("features", threads=count_cpus())
        return 1000 * (time.perf_counter() - started) / made.windows

    peaks = []

    def ours_watched() -> float:
        seconds = ours()
        peaks.append(_read_memory("VmHWM") - start_bytes)
        return seconds

    plain = make_plain_side(made, time.perf_counter)
    sides = {"ours, buffered": ours_watched, "every chunk unpacked once": unpack, "DataLoader over h5py": plain}
    paired = run_paired(sides, rounds=int(argv[2]))
    print(json.dumps({"seconds": paired.seconds, "peak_bytes": max(peaks)}))


def _make_loader(made: Made, shuffle: str) -> Loader:
    dataset = open_dataset(made.manifest, ["features"])
    windows = place_windows([(0, made.windows * WINDOW_ROWS)], [FIELD], stride=WINDOW_ROWS)
    return make_loader(
        dataset,
        windows,
        [FIELD],
        shuffle="global" if shuffle == "global" else "buffered",
        seed=_SEED,
        share=RankShare(BATCH),
        threads=count_cpus(),
        buffer_bytes=max(int(made.bytes * BUFFER_SHARE), 1 << 20),
    )


def _make_side(loader: Loader, clock: Callable[[], float]) -> Callable[[], float]:
    epochs = count()

    def read() -> float:
        position, seen = Position(_SEED, next(epochs)), 0
        started = clock()
        for batch in loader.batches(position):
            seen += len(batch.samples)
        assert seen == loader.samples, f"{seen} windows of {loader.samples}"
        return 1000 * (clock() - started) / seen

    return read


def _read_memory(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def _conclude(paired: Paired, figures: dict[str, tuple[str, str]], *more: Row) -> PartResult:
    ratios = {name: paired.ratio(above, below) for name, (above, below) in figures.items()}
    rows = [
        row if row.unit != "s" else Row(row.name, row.median, row.low, row.high, "ms/window", row.count)
        for row in make_rows(paired)
    ]
    return PartResult(
        {name: ratio.median for name, ratio in ratios.items()},
        {name: ratio.count for name, ratio in ratios.items()},
        (*rows, *more, *(make_row(name, ratio, "x") for name, ratio in ratios.items())),
    )


_MEASURES = ("shards", "native", "benchmarks/loader.py", "benchmarks/loader_data.py")
PARTS = (
    Part(
        name="memory",
        figures=("memory_gather_fraction", "naive_h5py_speedup_memory"),
        measures=_MEASURES,
        run=run_memory,
    ),
    Part(
        name="streaming",
        figures=("streaming_fraction", "naive_h5py_speedup_streaming"),
        measures=_MEASURES,
        run=run_streaming,
    ),
)
