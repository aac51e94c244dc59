"""Processes that the kernel killed for memory: the count of the job's own control group, else of the whole host."""

import re
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_VMSTAT = Path("/proc/vmstat")
_COUNT = re.compile(r"^oom_kill (\d+)", re.MULTILINE)
_SLURM_JOB = re.compile(r".*/job_\d+")


def read_oom_kills() -> int:
    """Kills so far; 0 where nothing counts them. A group's count leaves out what happens to others on this host."""
    counter = find_counter(_read(Path("/proc/self/cgroup")))
    for path in (counter, _VMSTAT):
        found = _COUNT.search(_read(path)) if path is not None else None
        if found is not None:
            return int(found[1])
    return 0


def find_counter(groups: str) -> Path | None:
    """The file that counts the kills of the group in `/proc/self/cgroup`'s text and of all groups below it.

    Of a Slurm job the whole job's: its supervisor and its ranks are in different steps. None with version 1 of
    control groups, which counts each group for itself.
    """
    path = next((line.removeprefix("0::") for line in groups.splitlines() if line.startswith("0::")), "/")
    job = _SLURM_JOB.match(path)
    folder = (job[0] if job is not None else path).lstrip("/")
    return _CGROUPS / folder / "memory.events" if folder else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
