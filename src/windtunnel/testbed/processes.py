"""The processes of a testbed: start them, tell whether they live, and find those that its jobs left behind."""

import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from windtunnel.errors import CommandError
from windtunnel.testbed.hosts import MARK
from windtunnel.testbed.places import namespace_file, slurm_conf
from windtunnel.testbed.spec import ClusterSpec, cluster_name
from windtunnel.testbed.state import ClusterState, Started

_PROC = Path("/proc")
_KILL_DEADLINE_S = 20.0
_LISTEN = "0A"
_SLURM_DAEMONS = ("slurmctld", "slurmd", "slurmdbd")


def start_process(name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> Started:
    """Start `argv` in a session of its own, printing to `log`, and outliving this process."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawnp(argv[0], list(argv), {**os.environ, **env}, file_actions=actions, setsid=True)
    return Started(name, pid, read_start_ticks(pid) or 0)


def read_start_ticks(pid: int) -> int | None:
    """The moment the process started, in clock ticks since boot; None when it has ended (zombies have)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold spaces
    return None if fields[0] in "ZX" else int(fields[19])


def is_alive(process: Started) -> bool:
    """Whether this very process still runs."""
    return read_start_ticks(process.pid) == process.start_ticks


def is_answering(path: Path) -> bool:
    """Whether a Unix socket takes connections."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        return client.connect_ex(str(path)) == 0


def is_listening(pid: int, port: int) -> bool:
    """Whether someone listens on the TCP port in the network namespace of `pid`; opens no connection."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (_PROC / str(pid) / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def read_boot_id() -> str:
    """Changes when the machine starts anew, and with it the meaning of process ids."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def find_processes(state: ClusterState) -> set[int]:
    """Everything that runs because of the testbed: its daemons, their jobs, and what jobs orphaned.

    A process counts when it is a recorded one, lives in a network namespace of the testbed, or carries
    the testbed's mark in its environment. This process and its ancestors never count.
    """
    spared = set(_ancestors(os.getpid()))
    recorded = {started.pid for started in state.processes if is_alive(started)}
    if state.boot_id != read_boot_id():
        recorded = set()
    namespaces = set(filter(None, (_identity(namespace_file(state.spec.folder, n)) for n in state.namespaces)))
    marks = _marks(state.spec)
    found = {pid for pid in _all_pids() if _in_namespaces(pid, namespaces) or _is_marked(pid, marks)}
    return {pid for pid in recorded | found if pid not in spared and read_start_ticks(pid) is not None}


def kill_processes(state: ClusterState) -> int:
    """Kill all of them, again until none is left, and return how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + _KILL_DEADLINE_S
    while found := find_processes(state):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it ended by itself
        killed |= found
        if time.monotonic() > deadline:
            raise CommandError(f"processes {sorted(found)} of the testbed did not end within {_KILL_DEADLINE_S} s")
        time.sleep(0.02)
    _reap(state)
    return len(killed)


def is_inside(state: ClusterState) -> bool:
    """Whether this process is itself in a namespace of the testbed."""
    here = _identity(_PROC / "self/ns/net")
    return here in {_identity(namespace_file(state.spec.folder, name)) for name in state.namespaces}


def find_foreign_daemons() -> list[str]:
    """Slurm daemons on this machine that no testbed started: `slurmd (pid 12)`."""
    found = []
    for pid in _all_pids():
        try:
            name = (_PROC / str(pid) / "comm").read_text().strip()
        except OSError:
            continue
        if name not in _SLURM_DAEMONS or read_start_ticks(pid) is None:
            continue
        if not _is_marked(pid, (f"{MARK}=",), prefix=True):
            found.append(f"{name} (pid {pid})")
    return found


def _marks(spec: ClusterSpec) -> tuple[str, ...]:
    return (
        f"{MARK}={spec.folder}",
        f"SLURM_CONF={slurm_conf(spec.folder)}",
        f"SLURM_CLUSTER_NAME={cluster_name(spec.folder)}",
    )


def _is_marked(pid: int, marks: tuple[str, ...], *, prefix: bool = False) -> bool:
    try:
        entries = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it ended, or is another user's
    wanted = tuple(mark.encode() for mark in marks)
    return any(entry.startswith(wanted) if prefix else entry in wanted for entry in entries)


def _in_namespaces(pid: int, namespaces: set[tuple[int, int]]) -> bool:
    return _identity(_PROC / str(pid) / "ns/net") in namespaces


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _all_pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            pid = int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return


def _reap(state: ClusterState) -> None:
    """Collect those daemons that are this process's own children."""
    for started in state.processes:
        try:
            os.waitpid(started.pid, os.WNOHANG)
        except ChildProcessError:
            continue  # the usual case: `up` was another process
