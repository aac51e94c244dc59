"""How long a save in the background holds training up: 256 MB of state, against a mere copy and `torch.save`."""

import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.faults_state import make_manifest, open_saver
from benchmarks.harness import PartResult, Row, make_row, run_paired
from windtunnel.checkpoints.dcp import load_tensors
from windtunnel.checkpoints.manifest import checkpoint_name
from windtunnel.statistics import median_interval
from windtunnel.units import MIB

_CHECK_EVERY = 10
"""So many saves, one is read back and held against the state at its moment."""
_WRITE_TIMEOUT_S = 120.0
STALL, COPY, TORCH_SAVE = "stall", "bare copy into kept buffers", "torch.save and fsync"


class Training:
    """Changes its state all the time, and saves it now and then."""

    def __init__(self, folder: Path, *, mib: float, parts: int) -> None:
        size = int(mib * MIB / 4 / parts)
        self.state = {f"w{part}": torch.randn(size) for part in range(parts)}
        self.waited = 0
        """Saves that found the one before unfinished."""
        self.checked = 0
        """Saves that were read back, and equal."""
        self._folder = folder
        self._saver = open_saver(folder, asynchronous=True)
        self._step = 0

    def save(self) -> float:
        """Seconds that a save held this thread up; then train on until it is written."""
        self._step += 1
        check = self._step % _CHECK_EVERY == 1
        wanted = {name: tensor.clone() for name, tensor in self.state.items()} if check else {}
        self.waited += len(self._saver.saved_s) < self._step - 1
        started = time.perf_counter()
        self._saver.save(self.state, make_manifest(self._step))
        stall_s = time.perf_counter() - started
        self._train_until_written()
        if check:
            self._compare(wanted)
        return stall_s

    def close(self) -> None:
        """Nothing is under way afterwards; raises what went wrong."""
        self._saver.wait()

    def _train_until_written(self) -> None:
        deadline = time.monotonic() + _WRITE_TIMEOUT_S
        while len(self._saver.saved_s) < self._step and time.monotonic() < deadline:
            for tensor in self.state.values():
                tensor.mul_(0.999).add_(1e-3)
        self._saver.check()

    def _compare(self, wanted: Mapping[str, Tensor]) -> None:
        found = {name: torch.empty_like(tensor) for name, tensor in wanted.items()}
        load_tensors(self._folder / checkpoint_name(self._step), found)
        changed = [name for name, tensor in wanted.items() if not torch.equal(found[name], tensor)]
        assert not changed, f"step {self._step} was saved with later values of {changed[:3]}"
        self.checked += 1


def run_stall(quick: bool) -> PartResult:
    """Few large tensors, on which the figures stand, and the same bytes in many small ones."""
    mib, rounds, many = (1.0, 3, 128) if quick else (256e6 / MIB, 100, 4096)
    large, rows = measure(mib=mib, parts=64, rounds=rounds)
    _, more = measure(mib=mib, parts=many, rounds=max(3, rounds // 5))
    return PartResult(large, dict.fromkeys(large, rounds), (*rows, *more))


def measure(*, mib: float, parts: int, rounds: int) -> tuple[dict[str, float], tuple[Row, ...]]:
    """The figures of one shape of state, and the table behind them."""
    torch.set_num_threads(1)  # as a rank has by default
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        training = Training(Path(folder) / "checkpoints", mib=mib, parts=parts)
        kept = {name: tensor.clone() for name, tensor in training.state.items()}
        sides = {
            STALL: training.save,
            COPY: lambda: _copy(training.state, kept),
            TORCH_SAVE: lambda: _torch_save(training.state, Path(folder) / "state.pt"),
        }
        paired = run_paired(sides, rounds=rounds)
        training.close()
    medians = {name: median_interval(values) for name, values in paired.seconds.items()}
    worst_s = read_p99(paired.seconds[STALL])
    figures = {
        "stall_copy_ratio": worst_s / medians[COPY].median,
        "stall_torch_save_ratio": worst_s / medians[TORCH_SAVE].median,
    }
    what = f"{parts} tensors of {mib * MIB / parts / 1e3:.0f} kB: "
    values = [
        *((f"{name}, p99", read_p99(seconds), "s") for name, seconds in paired.seconds.items()),
        ("stall p99 / median copy", figures["stall_copy_ratio"], "x"),
        ("stall p99 / copy p99", worst_s / read_p99(paired.seconds[COPY]), "x"),
        ("stall p99 / median torch.save", figures["stall_torch_save_ratio"], "x"),
        ("saves that waited for the one before", float(training.waited), ""),
        ("saves read back and equal", float(training.checked), ""),
    ]
    rows = [make_row(f"{what}{name}", interval, "s") for name, interval in medians.items()]
    rows += [Row(f"{what}{name}", value, value, value, unit, rounds) for name, value, unit in values]
    return figures, tuple(rows)


def read_p99(seconds: Sequence[float]) -> float:
    """The nearest rank at or above."""
    return sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1]


def _copy(state: Mapping[str, Tensor], kept: Mapping[str, Tensor]) -> float:
    started = time.perf_counter()
    for name, tensor in state.items():
        kept[name].copy_(tensor)
    return time.perf_counter() - started


def _torch_save(state: Mapping[str, Tensor], path: Path) -> float:
    started = time.perf_counter()
    with path.open("wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - started
