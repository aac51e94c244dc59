"""Bytes, seconds and counts: parse what people and Slurm write, print what people read."""

import re

from windtunnel.errors import SettingsError

MIB = 1024 * 1024
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:i?B)?", re.IGNORECASE)
_MEMORY_MIB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<fields>\d+(?::\d+){0,2})")


def parse_time_min(text: str | int) -> int:
    """Whole minutes, rounded up, of a time in Slurm's syntax.

    `90` and `90:30` are minutes and minutes:seconds, `1:30:00` hours, `1-12` days-hours.
    Source: sbatch(1), option --time. Raises SettingsError for anything else.
    """
    match = _TIME.fullmatch(str(text).strip())
    if match is None:
        raise SettingsError(f"time {text!r} is not in Slurm's syntax: write minutes, HH:MM:SS or D-HH:MM:SS")
    fields = [int(field) for field in match["fields"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = (*fields, 0, 0)[:3]
        total_s = int(match["days"]) * 86400 + hours * 3600 + minutes * 60 + seconds
    elif len(fields) == 3:
        total_s = fields[0] * 3600 + fields[1] * 60 + fields[2]
    else:
        total_s = fields[0] * 60 + (fields[1] if len(fields) == 2 else 0)
    return -(-total_s // 60)


def parse_memory_mib(text: str | int) -> int:
    """Whole MiB, rounded up, of a memory size in Slurm's syntax (`4G`, `512M`; a bare number is MiB)."""
    match = _MEMORY.fullmatch(str(text).strip())
    if match is None:
        raise SettingsError(f"memory {text!r} is not in Slurm's syntax: write 512M, 4G or a number of MiB")
    return int(-(-float(match[1]) * _MEMORY_MIB[match[2].upper()] // 1))


def parse_bytes(text: str | int) -> int:
    """Whole bytes of a size (`512`, `64K`, `8MiB`); units are binary. Raises SettingsError for anything else."""
    match = _MEMORY.fullmatch(str(text).strip())
    if match is None:
        raise SettingsError(f"size {text!r} is not a number of bytes: write 512, 64K or 8M")
    return int(float(match[1]) * 1024 ** " KMGTP".index(match[2].upper() or " "))


def format_time_slurm(minutes: int) -> str:
    """Minutes as Slurm prints them: `1-00:30:00`."""
    days, rest = divmod(minutes, 1440)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock


def format_bytes(count: float) -> str:
    """A count of bytes in binary units: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the loop returns at its last unit")


def format_seconds(seconds: float) -> str:
    """A duration for people: `850 us`, `12.3 ms`, `4.2 s`, `3 min 05 s`, `2 h 03 min`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_count(value: float) -> str:
    """A large number with a decimal prefix: `1.42 M`."""
    for limit, suffix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"
