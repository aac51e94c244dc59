"""Looks at the node that it runs on, and prints what it finds as one line of JSON. The standard library alone.

Run as a script, `python -I -S probe.py FOLDER GPUS`: so it starts in hundredths of a second, also where a file system
is slow. Every look has its time limit, so that a sick node still answers; what it means is for others to judge.
"""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FILES_S = 20.0
"""Time that a file system has for one small file."""
GPUS_S = 45.0
"""Time that nvidia-smi has: without persistence mode it wakes the driver first, seconds a GPU."""
XIDS_SINCE_S = 3600.0
GPU_FIELDS = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "pstate",
    "ecc.errors.uncorrected.volatile.total",
    "retired_pages.pending",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "clocks_throttle_reasons.hw_thermal_slowdown",
    "clocks_throttle_reasons.hw_power_brake_slowdown",
    "clocks_throttle_reasons.sw_thermal_slowdown",
)
FEW_GPU_FIELDS = ("index", "uuid", "name", "pci.bus_id")
"""What every driver knows: nvidia-smi refuses a whole query for one field that it does not."""
_CGROUPS = Path("/sys/fs/cgroup")
_MIB = 1 << 20
_UNLIMITED_MIB = 1 << 40
_DATA = b"x" * 4096


def look_at_place(folder: Path, name: str) -> dict[str, Any]:
    """Room in a folder, and how a small file of this `name` fares there: seconds, or the errno that refused it.

    `skew_s` is how far the file system's clock is ahead of this node's, known to within `write_s`.
    """
    found: dict[str, Any] = {"path": str(folder)}
    began = time.time()
    try:
        found["free_mib"] = read_free_mib(folder)
        path = folder / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, _DATA)
            os.fsync(descriptor)
            written = os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)
    except OSError as error:
        return {**found, "errno": errno.errorcode.get(error.errno or 0, "EIO"), "error": error.strerror or str(error)}
    ended = time.time()
    return {**found, "write_s": ended - began, "skew_s": written - (began + ended) / 2}


def read_free_mib(folder: Path) -> int | None:
    """Room for an ordinary user; None where the file system does not say."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize // _MIB if stat.f_blocks else None


def read_memory_limit_mib(groups: str, root: Path = _CGROUPS) -> int | None:
    """The least memory limit of the control groups in `/proc/self/cgroup`'s text; None without one."""
    limits: list[int] = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            base, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
            here = base / path.lstrip("/")
            limits += [limit for folder in (here, *here.parents) if (limit := _read_int(folder / name))]
    least = min(limits, default=_UNLIMITED_MIB * _MIB) // _MIB
    return least if least < _UNLIMITED_MIB else None


def ask_nvidia_smi(run: Callable[..., Any] = subprocess.run) -> dict[str, Any]:
    """GPUs as nvidia-smi tells of them: `rows` of `fields`, or its `problem`; nothing where it is absent."""
    problem = ""
    for fields in (GPU_FIELDS, FEW_GPU_FIELDS):
        argv = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            done = run(argv, capture_output=True, text=True, timeout=GPUS_S, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            return {}
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"problem": str(error)}
        if done.returncode == 0:
            return {"fields": fields, "rows": done.stdout}
        problem = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2] or f"code {done.returncode}"
    return {"problem": f"nvidia-smi: {problem}"}


def read_xids(kernel_log: Path = Path("/dev/kmsg")) -> list[str]:
    """What NVIDIA's driver told the kernel's log of faults within the hour; none where the log may not be read."""
    found: list[str] = []
    try:
        descriptor = os.open(kernel_log, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return found
    try:
        while record := os.read(descriptor, 8192):
            for line in record.decode(errors="replace").splitlines():
                head, _, text = line.partition(";")
                if "NVRM: Xid" in text and time.monotonic() - int(head.split(",")[2]) / 1e6 < XIDS_SINCE_S:
                    found.append(text[:300])
    except (OSError, ValueError, IndexError):
        pass  # the log's end, or a record that was overwritten meanwhile
    finally:
        os.close(descriptor)
    return found


def look(folder: Path, *, gpus: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """All that is found here; a look that took too long is `late`."""
    node = environ.get("SLURMD_NODENAME") or socket.gethostname()
    scratch, name = Path(environ.get("TMPDIR") or "/tmp"), f".probe-{node}-{os.getpid()}"
    places = {
        "folder": Answer(lambda: look_at_place(folder, name), FILES_S, folder),
        "scratch": Answer(lambda: look_at_place(scratch, name), FILES_S, scratch),
    }
    smi, xids = (Answer(ask, GPUS_S + 1.0) if gpus else None for ask in (ask_nvidia_smi, read_xids))
    found = {
        "node": node,
        "cpus": len(os.sched_getaffinity(0)),
        "cpus_online": os.cpu_count() or 0,
        "memory_limit_mib": read_memory_limit_mib(_read(Path("/proc/self/cgroup"))),
        "memory_total_mib": _read_total_mib(),
        "shm_mib": _read_shm_mib(),
        "visible": environ.get("CUDA_VISIBLE_DEVICES"),
    }
    found |= {key: answer.wait() for key, answer in places.items()}
    return found | {"gpus": smi.wait() if smi else {}, "xids": xids.wait() if xids else []}


class Answer:
    """Of a question asked in the background; one that does not come in time is `{"late": …}`."""

    def __init__(self, ask: Callable[[], Any], limit_s: float, path: Path | None = None) -> None:
        self._late = {"path": str(path), "late": limit_s}
        self._deadline = time.monotonic() + limit_s
        self._found: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._found.append(ask()), daemon=True)
        self._thread.start()

    def wait(self) -> Any:
        """The answer, or that there was none in time."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        return self._found[0] if self._found else self._late


def _read_total_mib() -> int | None:
    match = re.search(r"^MemTotal:\s+(\d+) kB", _read(Path("/proc/meminfo")), re.MULTILINE)
    return int(match[1]) // 1024 if match else None


def _read_shm_mib() -> int | None:
    try:
        return read_free_mib(Path("/dev/shm"))
    except OSError:
        return None


def _read_int(path: Path) -> int:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]), gpus=int(sys.argv[2]), environ=os.environ)), flush=True)
    os._exit(0)  # a thread that waits for a dead file system would keep the process
