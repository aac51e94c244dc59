"""Runs attempts of the matrix' sides as processes, and says what became of each."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults_crash import build_library
from benchmarks.faults_matrix.journal import DONE, RESUMED, STEP, Event, Order, read_journal
from benchmarks.faults_matrix.model import FAULTS
from benchmarks.faults_matrix.ours import read_events
from benchmarks.faults_matrix.sides import OURS, Side, python_path
from benchmarks.harness import ROOT

DEADLINE_S = 150.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Attempt:
    """What became of one attempt."""

    codes: tuple[int | None, ...]
    """Exit codes of the ranks; None for one that the deadline ended."""
    events: tuple[Event, ...]
    """Of rank 0, and of this attempt alone."""
    log: str
    """What all ranks printed."""
    wall_s: float

    @property
    def resumed(self) -> Event | None:
        """Where training began; None when it never did."""
        return next((event for event in self.events if event.kind == RESUMED), None)

    @property
    def last_step(self) -> int:
        """The last that was finished."""
        return max((event.step for event in self.events if event.kind == STEP), default=0)

    @property
    def done(self) -> Event | None:
        """The end, where it was reached."""
        return next((event for event in self.events if event.kind == DONE), None)

    @property
    def hung(self) -> bool:
        """Whether the deadline ended it."""
        return None in self.codes


class Child:
    """A rank of an attempt: a child of its side's server, so that its pid stays its own until it is asked for."""

    def __init__(self, server: "Server", pid: int) -> None:
        self._server = server
        self.pid = pid

    def poll(self) -> int | None:
        """Its exit code; None while it lives."""
        code: int | None = self._server.ask({"poll": self.pid})
        return code

    def send(self, signum: int) -> None:
        """A signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def is_stopped(self) -> bool:
        """Whether it stands still by SIGSTOP."""
        if self.poll() is not None:
            return False
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class Server:
    """A process that has imported a side's packages, and forks."""

    def __init__(self, side: Side, library: Path) -> None:
        env = {
            **os.environ,
            **dict(side.environment),
            "PYTHONPATH": python_path(),
            "LD_PRELOAD": str(library),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-m", "benchmarks.faults_matrix.serve", side.module]
        self._process = subprocess.Popen(command, text=True, cwd=ROOT, env=env, **pipes)

    def ask(self, command: dict[str, Any]) -> Any:
        """The answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(command), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """It holds nothing."""
        self._process.kill()
        self._process.communicate()


class Running:
    """An attempt under way."""

    def __init__(self, side: Side, order: Order, children: Sequence[Child], logs: Sequence[Path]) -> None:
        self._side, self._order, self._logs = side, order, logs
        self.children = children
        self._started = time.monotonic()

    def wait(self, deadline_s: float = DEADLINE_S) -> Attempt:
        """Let it end, or end it at the deadline."""
        wait_until(lambda: all(child.poll() is not None for child in self.children), deadline_s)
        wall_s = time.monotonic() - self._started
        codes = tuple(child.poll() for child in self.children)
        for child in self.children:
            child.send(signal.SIGKILL)
        wait_until(lambda: all(child.poll() is not None for child in self.children), deadline_s)
        log = "".join(log.read_text(errors="replace") for log in self._logs)
        return Attempt(codes, tuple(self._read_events(log)), log, wall_s)

    def _read_events(self, log: str) -> list[Event]:
        folder, attempt = Path(self._order.folder), self._order.attempt
        own = read_events(folder, attempt, log) if self._side == OURS else []
        return own + [event for event in read_journal(folder) if event.attempt == attempt]


class Bed:
    """Where cases are tried: a folder, the library that kills at file operations, and a `scontrol` that records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked = root / "scontrol.txt"
        """What was asked of `scontrol`, a line a call."""
        self._library = build_library(root)
        self._servers: dict[str, Server] = {}
        self._count = 0
        self._whole: dict[tuple[object, ...], Attempt] = {}
        script = root / "bin" / "scontrol"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\necho "$@" >>{self.asked}\n')
        script.chmod(0o755)

    def close(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.close()

    def make_order(self, side: Side, *, root: Path | None = None, **more: Any) -> Order:
        """The first attempt in a fresh folder."""
        self._count += 1
        folder = (root or self.root) / f"t{self._count}"
        folder.mkdir()
        order = Order(str(folder), **more)
        side.prepare(order)
        return order

    def start(self, side: Side, order: Order, *, faults: str = "", env: Mapping[str, str] | None = None) -> Running:
        """Start an attempt's ranks."""
        if side.name not in self._servers:
            self._servers[side.name] = Server(side, self._library)
        server, text = self._servers[side.name], json.dumps(asdict(order))
        path = f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        shared = {FAULTS: faults, "PATH": path, **_find_rendezvous(order), **(env or {})}
        logs = [Path(order.folder) / f"log-{order.attempt}-{rank}.txt" for rank in range(order.ranks)]
        children = []
        for rank, log in enumerate(logs):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)} if order.ranks > 1 else {}
            pid = server.ask({"order": text, "log": str(log), "env": {**shared, **own}})
            children.append(Child(server, pid))
        return Running(side, order, children, logs)

    def run(self, side: Side, order: Order, *, faults: str = "", env: Mapping[str, str] | None = None) -> Attempt:
        """Start an attempt and wait for its end."""
        return self.start(side, order, faults=faults, env=env).wait()

    def find_whole(self, side: Side, order: Order) -> Attempt:
        """The run without faults of the same order; made when it is first needed."""
        key = (side.name, order.steps, order.save_every, order.dropout, order.ranks)
        if key not in self._whole:
            more = {"steps": order.steps, "save_every": order.save_every, "dropout": order.dropout}
            whole = self.run(side, self.make_order(side, ranks=order.ranks, **more))
            assert whole.done is not None, f"{side.name}: the run without faults ended with {whole.log}"
            self._whole[key] = whole
        return self._whole[key]


def wait_until(is_true: Callable[[], bool], deadline_s: float = DEADLINE_S) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + deadline_s
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _find_rendezvous(order: Order) -> dict[str, str]:
    if order.ranks == 1:
        return {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return {"WORLD_SIZE": str(order.ranks), "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
