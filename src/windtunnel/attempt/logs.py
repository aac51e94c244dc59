"""Logs that cannot fill a disk: a file of bounded size that keeps its beginning and its end.

The supervisor alone writes them, from its ranks' pipes.
"""

import os
import re
from pathlib import Path
from typing import Protocol

_LABEL = re.compile(rb"^ *(\d+): ?")
# What srun and its daemons say between the lines of ranks; with --label it may carry a rank's number.
_FAILED_TASK = re.compile(rb"srun: error: [^:\s]+: tasks? \d[\d,-]*: (?!Terminated)")
_LAUNCHER_WORDS = (b"srun: ", b"slurmstepd: ", b"slurmstepd-")
_MAX_LINE_BYTES = 1 << 16


class Sink(Protocol):
    """Takes what a process prints."""

    def write(self, data: bytes) -> None:
        """Take some of it. Never raises: a log that cannot be written must not stop its program."""

    def close(self) -> None:
        """There is no more."""


class BoundedLog:
    """One file of at most `limit_bytes`: its first quarter stays, and of the rest the newest."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self._limit = limit_bytes
        self._head = limit_bytes // 4
        self._left_out = 0
        self.write(b"")

    def write(self, data: bytes) -> None:
        """Add `data`, leaving out what is oldest after the first quarter when there is no room."""
        try:
            # Opened each time: readers on other hosts see it at once, and a thousand ranks hold no thousand files.
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o664)
            try:
                self._append(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            pass  # a full disk: the program goes on, and its log lacks a part

    def close(self) -> None:
        """Nothing is held open."""

    def _append(self, descriptor: int, data: bytes) -> None:
        room = self._limit - os.fstat(descriptor).st_size
        while len(data) > room:
            _write_all(descriptor, data[:room] if room > 0 else b"")
            data = data[max(room, 0) :]
            self._cut(descriptor)
            room = self._limit - os.fstat(descriptor).st_size
        _write_all(descriptor, data)

    def _cut(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, self._head, size - self._head)
        self._left_out += size - self._head - len(tail)
        os.ftruncate(descriptor, self._head)
        _write_all(descriptor, f"\n[windtunnel: about {self._left_out:,} bytes left out here]\n".encode() + tail)


class LabelledLogs:
    """`srun --label`'s output, apart again: each rank's lines to its own log, srun's own words to `launcher`."""

    task_failed = False
    """Whether srun has told of a rank that failed."""

    def __init__(self, folder: Path, launcher: Path, *, ranks: int, limit_bytes: int) -> None:
        self._launcher = BoundedLog(launcher, limit_bytes)
        self._logs = {rank: BoundedLog(folder / f"rank-{rank}.log", limit_bytes) for rank in range(ranks)}
        self._rest = b""

    def write(self, data: bytes) -> None:
        """Take the next bytes of srun's output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        self._write_lines(lines)

    def close(self) -> None:
        """Write the line that did not end."""
        if self._rest:
            self._write_lines([self._rest])
            self._rest = b""

    def _write_lines(self, lines: list[bytes]) -> None:
        parts: dict[BoundedLog, list[bytes]] = {}
        for line in lines:
            label = _LABEL.match(line)
            log = self._logs.get(int(label[1])) if label else None
            text = line[label.end() :] if label and log is not None else line
            if log is not None:
                parts.setdefault(log, []).append(text)
            if log is None or text.startswith(_LAUNCHER_WORDS):
                parts.setdefault(self._launcher, []).append(text)
                self.task_failed = self.task_failed or _FAILED_TASK.match(text) is not None
        for log, texts in parts.items():
            log.write(b"\n".join(texts) + b"\n")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
