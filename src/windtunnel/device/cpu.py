"""What this host's processor, memory and NVIDIA driver are, from /proc; no torch here."""

import os
import platform
import re
from pathlib import Path

_MODEL_KEYS = ("model name", "Model", "cpu")
_DRIVER = re.compile(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)")


def parse_cpu_name(cpuinfo: str) -> str:
    """The processor's name in the text of /proc/cpuinfo; empty where it gives none."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return next((found[key] for key in _MODEL_KEYS if found.get(key)), "")


def parse_memory_mib(meminfo: str) -> int:
    """MemTotal of the text of /proc/meminfo, in MiB; 0 where it is not said."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def parse_driver_version(text: str) -> str:
    """The version in the text of /proc/driver/nvidia/version; empty where there is none."""
    match = _DRIVER.search(text)
    return match[1] if match else ""


def read_cpu_name() -> str:
    """This host's processor, or its architecture where the kernel does not name it."""
    return parse_cpu_name(_read(Path("/proc/cpuinfo"))) or platform.machine()


def read_memory_mib() -> int:
    """This host's memory in MiB."""
    return parse_memory_mib(_read(Path("/proc/meminfo")))


def read_driver_version() -> str:
    """The NVIDIA driver loaded on this host; empty without one."""
    return parse_driver_version(_read(Path("/proc/driver/nvidia/version")))


def count_cpus() -> int:
    """CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
