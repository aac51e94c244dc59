"""The times at each size that a benchmark's log gives, for a curve. Pure."""

from collections.abc import Mapping

from windtunnel.errors import InputFileError
from windtunnel.fabric.timings import TimingRow, Timings

_US = 1e-6
_LATENCY_WORDS = ("latency", "overall")


def read_points(timings: Timings) -> Mapping[int, tuple[float, ...]]:
    """Seconds by size. Rows of nccl-tests without data are left out, since nothing is sent then.

    Raises InputFileError for a log of bandwidths alone, which are of a window of messages and no message's time.
    """
    found: dict[int, tuple[float, ...]] = {}
    for row in timings.rows:
        times = _read_nccl(row) if timings.program == "nccl-tests" else _read_osu(row)
        if times:
            found[row.size_bytes] = (*found.get(row.size_bytes, ()), *times)
    if not found:
        raise InputFileError(f"the log of {timings.operation or timings.program} has no latencies to fit a curve to")
    return found


def _read_nccl(row: TimingRow) -> tuple[float, ...]:
    samples = (row.out_of_place, row.in_place)
    return tuple(s.time_us * _US for s in samples if s is not None and s.time_us > 0 and row.size_bytes > 0)


def _read_osu(row: TimingRow) -> tuple[float, ...]:
    named = (value for name, value in row.values if any(word in name.lower() for word in _LATENCY_WORDS))
    first = next(named, 0.0)
    return (first * _US,) if first > 0 else ()
