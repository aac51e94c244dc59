"""What one node of the doctor's job does: tries with its peer what ranks, leases and ledgers need of each other.

Run as `python -m windtunnel.cli.doctor.node FOLDER HOST...` by srun, one task a node. Each leaves a
`report-<rank>.json` in the shared FOLDER. It needs the standard library alone, and every wait has a deadline.
"""

import fcntl
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

WAIT_S = 30.0
"""Longest wait for the other node, or for the login node."""
_POLL_S = 0.01
_TURNS = 5
RACES = 8
_LINES = 50
_TORCH_S = 300
T = TypeVar("T")


@dataclass
class NodeReport:
    """What a node saw; times in seconds, None where something was not tried or not seen."""

    rank: int
    host: str
    python: str
    umask: int
    interfaces: list[str] = field(default_factory=list)
    lookups: dict[str, float | None] = field(default_factory=dict)
    """How long each name took; None for one that is not known."""
    file_turn_s: float | None = None
    """Median of half a round trip by renamed files."""
    mtime_turn_s: float | None = None
    """Longest wait until the other node's touch of a file was seen."""
    won: list[int] = field(default_factory=list)
    """The races for an exclusive link that this node won."""
    lines_kept: int | None = None
    """Of the lines that both nodes appended to one file at once."""
    lines_written: int = 0
    lock_seen: bool | None = None
    """Whether the other node's lock was respected."""
    connect_s: float | None = None
    torch: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pair:
    """The shared folder, and which of the nodes this is."""

    folder: Path
    rank: int
    ranks: int

    @property
    def peer(self) -> int:
        return 1 - self.rank

    def say(self, name: str, text: str = "") -> None:
        """Publish a file by rename."""
        fresh = self.folder / f".{name}.{self.rank}.tmp"
        fresh.write_text(text)
        fresh.rename(self.folder / name)

    def hear(self, name: str) -> str:
        """Wait for a file of the other's; TimeoutError past the deadline."""
        return wait_for(lambda: _read(self.folder / name), f"{name} of the other node")

    def meet(self, name: str) -> None:
        """Wait until both are here."""
        self.say(f"{name}-{self.rank}")
        self.hear(f"{name}-{self.peer}")


def wait_for(look: Callable[[], T | None], what: str, *, deadline_s: float = WAIT_S) -> T:
    """The first answer that is not None; TimeoutError, naming `what`, past the deadline."""
    end = time.monotonic() + deadline_s
    while (answer := look()) is None:
        if time.monotonic() > end:
            raise TimeoutError(f"{what} was not seen in {deadline_s:.0f} s")
        time.sleep(_POLL_S)
    return answer


def run_node(folder: Path, hosts: list[str], *, rank: int, ranks: int) -> NodeReport:
    """All that this node tries; a step that fails is told, and the next ones are tried all the same."""
    pair = Pair(folder, rank, ranks)
    report = NodeReport(rank, socket.gethostname(), f"{platform.python_version()} ({sys.executable})", _read_umask())
    report.interfaces = sorted(name for _, name in socket.if_nameindex() if name != "lo")
    steps: list[Callable[[Pair, NodeReport], None]] = [_answer_clock]
    if ranks > 1:
        steps += [_take_turns, _race, _append, _lock, _connect]
    report.lookups = {host: look_up(host) for host in hosts}
    for step in steps:
        try:
            step(pair, report)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            report.problems.append(f"{step.__name__.strip('_').replace('_', ' ')}: {error}")
    report.torch = _check_torch()
    return report


def look_up(host: str) -> float | None:
    """Seconds that the host's name takes; None when it is not known."""
    began = time.perf_counter()
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return None
    return time.perf_counter() - began


def _answer_clock(pair: Pair, _report: NodeReport) -> None:
    # The login node writes `ask` once it sees both, and takes the time until it sees the answers.
    pair.say(f"here-{pair.rank}")
    pair.hear("ask")
    pair.say(f"clock-{pair.rank}", repr(time.time()))


def _take_turns(pair: Pair, report: NodeReport) -> None:
    """The beacon's text goes to and fro by renames; then its time is touched by one and watched by the other."""
    pair.meet("turns")
    halves = []
    for turn in range(_TURNS):
        began = time.monotonic()
        if pair.rank == 0:
            pair.say("beacon", str(turn))
            pair.hear(f"echo-{turn}")
            halves.append((time.monotonic() - began) / 2)
        else:
            wait_for(partial(_has_text, pair.folder / "beacon", str(turn)), "the beacon's text")
            pair.say(f"echo-{turn}")
    report.file_turn_s = statistics.median(halves) if halves else None
    report.mtime_turn_s = _watch_touches(pair)


def _watch_touches(pair: Pair) -> float | None:
    beacon, longest = pair.folder / "beacon", 0.0
    for turn in range(_TURNS):
        before = beacon.stat().st_mtime_ns
        pair.meet(f"touch-{turn}")
        began = time.monotonic()
        if pair.rank == 0:
            time.sleep(_POLL_S)  # past the granularity of the file's time
            os.utime(beacon)
        wait_for(partial(_has_moved, beacon, before), "the beacon's new time")
        longest = max(longest, time.monotonic() - began)
    return longest if pair.rank else None


def _has_text(path: Path, text: str) -> bool | None:
    return _read(path) == text or None


def _has_moved(path: Path, before_ns: int) -> bool | None:
    return path.stat().st_mtime_ns != before_ns or None


def _race(pair: Pair, report: NodeReport) -> None:
    mine = pair.folder / f"mine-{pair.rank}"
    mine.write_text(str(pair.rank))
    for number in range(RACES):
        pair.meet(f"race-{number}")
        try:
            os.link(mine, pair.folder / f"race-won-{number}")
            report.won.append(number)
        except FileExistsError:
            pass


def _append(pair: Pair, report: NodeReport) -> None:
    path = pair.folder / "lines"
    pair.meet("append")
    for number in range(_LINES):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o664)
        try:
            os.write(descriptor, f"{pair.rank} {number}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    pair.meet("appended")
    report.lines_written = pair.ranks * _LINES
    report.lines_kept = len(set(path.read_text().splitlines()))


def _lock(pair: Pair, report: NodeReport) -> None:
    path = pair.folder / "lock"
    path.touch()
    with path.open("r+") as file:
        if pair.rank == 0:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pair.meet("locked")
        if pair.rank == 1:
            report.lock_seen = not _can_lock(file)
        pair.meet("unlocked")


def _can_lock(file: Any) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _connect(pair: Pair, report: NodeReport) -> None:
    """As ranks find the first of them: by its host's name, at a port that it chose."""
    if pair.rank == 0:
        with socket.create_server(("", 0)) as server:
            server.settimeout(WAIT_S)
            pair.say("port", f"{report.host} {server.getsockname()[1]}")
            server.accept()[0].close()
        return
    host, port = pair.hear("port").split()
    began = time.perf_counter()
    socket.create_connection((host, int(port)), timeout=WAIT_S).close()
    report.connect_s = time.perf_counter() - began


def _check_torch() -> dict[str, Any]:
    argv = [sys.executable, "-m", "windtunnel.cli.doctor.torch_check"]
    began = time.monotonic()
    try:
        said = subprocess.run(argv, capture_output=True, text=True, timeout=_TORCH_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"importing torch took more than {_TORCH_S} s"}
    if said.returncode:
        return {"error": next(reversed(said.stderr.strip().splitlines()), f"exit {said.returncode}")}
    return {**json.loads(said.stdout.splitlines()[-1]), "wall_s": time.monotonic() - began}


def _read_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def main() -> None:
    """Run as a task of srun's."""
    folder, hosts = Path(sys.argv[1]), sys.argv[2:]
    rank, ranks = int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1"))
    report = run_node(folder, hosts, rank=rank, ranks=ranks)
    Pair(folder, rank, ranks).say(f"report-{rank}.json", json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
