"""A lease: at most one live process drives a study, or supervises a trial, on any host of the file system.

A lease is a folder of numbered files, of which the highest counts. Taking it makes the next number by an
exclusive link, so that of two processes that find the same dead holder only one succeeds it. Numbers
never go back: a released lease keeps its last file, marked free.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.artifacts import write_atomic
from windtunnel.errors import BusyError

STALE_AFTER_S = 90.0
"""Age of the last heartbeat past which a holder on another host counts as dead."""
BEAT_EVERY_S = 5.0
_TRIES = 20


@dataclass(frozen=True)
class Holder:
    """The process that holds a lease; `started` tells it from a later process of the same number."""

    host: str
    pid: int
    started: str
    since: float
    """Seconds since 1970 UTC."""
    free: bool = False
    job_id: str = ""
    """The Slurm job that it runs in, as squeue writes it; empty outside one."""


class Lease:
    """A lease that this process holds, until `release`. Call `beat` from the holder's own loop."""

    def __init__(self, path: Path, what: str, holder: Holder) -> None:
        self._path = path
        self._what = what
        self._holder = holder
        self._beaten = time.monotonic()
        self._lost = False

    @property
    def generation(self) -> int:
        """Its number, higher than that of every lease before it."""
        return int(self._path.name)

    def beat(self) -> None:
        """Show that the holder lives. Raises BusyError, from then on, when another process took the lease over.

        A file system that fails now is asked again at the next beat.
        """
        if not self._lost:
            if time.monotonic() - self._beaten < BEAT_EVERY_S:
                return
            self._beaten = time.monotonic()
            self._lost = not self._renew()
        if self._lost:
            raise BusyError(f"{self._what} was taken over by another process, or its lease was removed")

    def _renew(self) -> bool:
        """Whether the lease is still this process's, as far as can be seen."""
        try:
            if _newest(self._path.parent) != self._path or _read_holder(self._path) not in (self._holder, None):
                return False
            os.utime(self._path)
        except OSError:
            pass  # a stale handle or a full disk: should it last, another takes over, and a later beat tells
        return True

    def release(self) -> None:
        """Mark the lease free, if it is still this process's."""
        # Who removes the folder makes numbers begin again: then another's may lie under the same one.
        if _read_holder(self._path) != self._holder or _newest(self._path.parent) != self._path:
            return
        try:
            write_atomic(self._path, _render(replace(self._holder, free=True)))
        except OSError:
            # On a full disk: this process ends, and a dead holder is succeeded as well as a free lease is taken.
            pass


def take_lease(folder: Path, what: str, *, stale_after_s: float = STALE_AFTER_S, job_id: str = "") -> Lease:
    """Take the lease in `folder`, over a dead holder if there is one.

    Raises BusyError, naming the holder, while a live process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = read_process_start(os.getpid()) or ""
    me = Holder(socket.gethostname(), os.getpid(), start, time.time(), job_id=job_id)
    mine = folder / f".{uuid.uuid4().hex}.tmp"
    try:
        mine.write_bytes(_render(me))
        for _ in range(_TRIES):
            newest = _newest(folder)
            if newest is not None:
                _refuse_live(newest, what, mine, stale_after_s)
            taken = folder / str(int(newest.name) + 1 if newest is not None else 1)
            try:
                os.link(mine, taken)
            except FileExistsError:
                continue
            # A number that others took, and removed, since we looked is no lease: theirs are higher.
            if _newest(folder) != taken:
                taken.unlink(missing_ok=True)
                continue
            _remove_older(folder, taken)
            return Lease(taken, what, me)
    finally:
        mine.unlink(missing_ok=True)
    raise BusyError(f"{what}: {_TRIES} other processes took its lease in {folder} just now: try again")


def is_newest_generation(folder: Path, generation: int) -> bool:
    """Whether the lease of that number is held still, and none follows it. Raises OSError when nobody can say.

    The file itself is opened: a network file system then asks its server rather than its cache.
    """
    try:
        free = bool(json.loads((folder / str(generation)).read_text())["free"])
    except FileNotFoundError:
        return False
    newest = _newest(folder)
    return not free and newest is not None and newest.name == str(generation)


def start_beating(leases: Sequence[Lease], *, tell: Callable[[BusyError], None] = lambda _: None) -> threading.Event:
    """Beat from a thread, however long the holder's own loop takes, until the event that is returned is set.

    Once a lease is lost the thread `tell`s it, once, and ends; that lease's own `beat` raises it as well.
    """
    ended = threading.Event()
    threading.Thread(target=_beat_on, args=(ended, leases, tell), daemon=True).start()
    return ended


def read_live_holder(folder: Path, *, stale_after_s: float = STALE_AFTER_S) -> Holder | None:
    """The live process that holds the lease in `folder`, if any. Judges another host's by this host's clock."""
    newest = _newest(folder)
    holder = _read_holder(newest) if newest is not None else None
    if newest is None or holder is None or holder.free:
        return None
    return holder if _is_live(holder, time.time() - _mtime(newest), stale_after_s) else None


def bury_holder(folder: Path, holder: Holder) -> bool:
    """Free the lease of a holder of another host that is known to be dead, though its heartbeat is still fresh.

    False when it is not that holder's any more. Should it live after all, its next `beat` tells it to stop.
    """
    newest = _newest(folder)
    if newest is None or _read_holder(newest) != holder:
        return False
    grave = folder / f".{uuid.uuid4().hex}.tmp"
    grave.write_bytes(_render(replace(holder, free=True)))
    try:
        os.link(grave, folder / str(int(newest.name) + 1))
    except FileExistsError:
        return False
    finally:
        grave.unlink(missing_ok=True)
    return True


def read_process_start(pid: int) -> str | None:
    """Boot and clock tick at which a process of this host began; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The command's name may hold spaces and brackets; what follows its last bracket begins at field 3.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else f"{boot}:{fields[19]}"


def _beat_on(ended: threading.Event, leases: Sequence[Lease], tell: Callable[[BusyError], None]) -> None:
    try:
        while not ended.wait(BEAT_EVERY_S):
            for lease in leases:
                lease.beat()
    except BusyError as error:
        tell(error)


def _refuse_live(newest: Path, what: str, mine: Path, stale_after_s: float) -> None:
    holder = _read_holder(newest)
    # Both times come from the file system's own clock, so that hosts' clocks need not agree.
    os.utime(mine)
    if holder is None or holder.free or not _is_live(holder, _mtime(mine) - _mtime(newest), stale_after_s):
        return
    since = datetime.fromtimestamp(holder.since, UTC).isoformat(sep=" ", timespec="seconds")
    raise BusyError(
        f"{what} is driven by pid {holder.pid} on host {holder.host} since {since}: wait for it, or stop it"
    )


def _is_live(holder: Holder, silent_s: float, stale_after_s: float) -> bool:
    if holder.host == socket.gethostname():
        return read_process_start(holder.pid) == holder.started
    return silent_s < stale_after_s


def _newest(folder: Path) -> Path | None:
    try:
        numbered = [entry for entry in folder.iterdir() if entry.name.isdecimal()]
    except FileNotFoundError:
        return None
    return max(numbered, key=lambda entry: int(entry.name), default=None)


def _remove_older(folder: Path, taken: Path) -> None:
    for entry in folder.iterdir():
        if entry.name.isdecimal() and int(entry.name) < int(taken.name):
            entry.unlink(missing_ok=True)


def _read_holder(path: Path) -> Holder | None:
    try:
        known = json.loads(path.read_text())
        # What a later version adds is passed over.
        return Holder(**{item.name: known[item.name] for item in fields(Holder) if item.name in known})
    except (OSError, ValueError, TypeError):
        return None


def _render(holder: Holder) -> bytes:
    return (json.dumps(asdict(holder)) + "\n").encode()


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
