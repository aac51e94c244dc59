"""What a rank attains here: matrix products, copies in memory, and writing and reading a file."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from windtunnel.device.accelerator import synchronize
from windtunnel.records.cluster import Rate
from windtunnel.units import MIB

_BUDGET_S = 0.5
_LEAST, _MOST = 3, 30
# A processor without bf16 instructions is fifty times slower in bf16: a smaller product keeps its turn short.
_CPU_MATMUL_DIM = {torch.float32: 768, torch.bfloat16: 384}
_ACCELERATOR_MATMUL_DIM = 8192
_CPU_COPY_BYTES = 128 * MIB
_ACCELERATOR_COPY_BYTES = 1024 * MIB
_FILE_BYTES = 32 * MIB


def measure_rate(name: str, amount: float, unit: str, work: Callable[[], float]) -> Rate:
    """`amount` over the seconds that `work` returns: median and median absolute deviation.

    The first call is discarded; then calls go on until the budget is spent, within bounds.
    """
    once_s = work()
    if once_s < _BUDGET_S:
        once_s = work()
    repeats = max(_LEAST, min(_MOST, int(_BUDGET_S / max(once_s, 1e-9))))
    values = [amount / work() for _ in range(repeats)]
    median = statistics.median(values)
    return Rate(name, median, statistics.median(abs(value - median) for value in values), unit, repeats)


def measure_matmul(device: torch.device, dtype: torch.dtype, *, name: str) -> Rate:
    """A square matrix product, in GFLOP/s (2 n^3 operations)."""
    dim = _CPU_MATMUL_DIM[dtype] if device.type == "cpu" else _ACCELERATOR_MATMUL_DIM
    left, right = (torch.randn(dim, dim, device=device).to(dtype) for _ in range(2))
    out = torch.empty(dim, dim, dtype=dtype, device=device)
    return measure_rate(
        name, 2 * dim**3 / 1e9, "GFLOP/s", lambda: _time(lambda: torch.mm(left, right, out=out), device)
    )


def measure_copy(device: torch.device) -> Rate:
    """A copy within memory, in GB/s; bytes read and bytes written both count."""
    size = _CPU_COPY_BYTES if device.type == "cpu" else _ACCELERATOR_COPY_BYTES
    source = torch.zeros(size // 4, device=device)
    target = torch.empty_like(source)
    return measure_rate("copy", 2 * size / 1e9, "GB/s", lambda: _time(lambda: target.copy_(source), device))


def measure_storage(folder: Path) -> tuple[Rate, Rate]:
    """A file in `folder` written with fsync, and read after its pages were dropped, in GB/s."""
    data = os.urandom(_FILE_BYTES)  # random, so that a compressing file system gains nothing
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".storage-", dir=folder) as work:
        path = Path(work) / "block"
        write = measure_rate("storage_write", _FILE_BYTES / 1e9, "GB/s", lambda: _write_file(path, data))
        read = measure_rate("storage_read", _FILE_BYTES / 1e9, "GB/s", lambda: _read_file(path))
    return write, read


def _time(work: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    started = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - started


def _write_file(path: Path, data: bytes) -> float:
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
    return time.perf_counter() - started


def _read_file(path: Path) -> float:
    with path.open("rb", buffering=0) as file:
        # Only an advice: a file system that keeps its pages shows the rate of memory here.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        started = time.perf_counter()
        while file.read(MIB):
            pass
        return time.perf_counter() - started
