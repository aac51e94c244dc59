"""The folder that studies share, seen from one machine: its kind, its room, and what its file system can do."""

import fcntl
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.cli.doctor.findings import Finding, fail, warn
from windtunnel.units import format_bytes

AREA = "folder"
_NODE_OWN = frozenset({"tmpfs", "ramfs", "overlay", "squashfs"})
_SYNCS = 5
_SLOW_SYNC_S = 0.2
_LITTLE_ROOM = 10 << 30
_FEW_FILES = 100_000
_SKEW_S = 5.0


@dataclass(frozen=True)
class FolderFacts:
    """What was seen in a folder; times in seconds."""

    path: str
    kind: str
    """Of its file system, such as `nfs4`."""
    options: tuple[str, ...]
    """Of its mount."""
    free_bytes: int
    free_files: int | None
    """None where the file system does not count them."""
    replaces: bool
    """A rename replaces a file that another process has open, whose reader keeps the old text."""
    links: bool
    """Of two links to one name the second fails."""
    locks: bool
    sync_s: float
    """Median of writing, syncing and renaming a small file."""
    clock_ahead_s: float
    """The file system's clock less this machine's."""
    inherits_group: bool
    """A new folder in one with the set-group-ID bit has it too."""


def find_mount(path: str, mounts: str) -> tuple[str, tuple[str, ...]]:
    """Kind and options of the file system that holds `path`, from the text of /proc/mounts."""
    rows = [line.split() for line in mounts.splitlines()]
    holding = [row for row in rows if len(row) > 3 and _holds(row[1].replace("\\040", " "), path)]
    # Of two mounts on one place the later one is seen.
    best = max(enumerate(holding), key=lambda item: (len(item[1][1]), item[0]), default=None)
    return (best[1][2], tuple(best[1][3].split(","))) if best else ("unknown", ())


def read_folder(folder: Path) -> FolderFacts:
    """Try what our records need in a folder of its own below `folder`, and take it away again."""
    folder.mkdir(parents=True, exist_ok=True)
    kind, options = find_mount(str(folder.resolve()), Path("/proc/mounts").read_text())
    room = os.statvfs(folder)
    trial = Path(tempfile.mkdtemp(prefix=".doctor-", dir=folder))
    try:
        return FolderFacts(
            path=str(folder.resolve()),
            kind=kind,
            options=options,
            free_bytes=room.f_bavail * room.f_frsize,
            free_files=room.f_favail or None,
            replaces=_try(_replaces, trial),
            links=_try(_links_once, trial),
            locks=_try(_locks, trial),
            sync_s=statistics.median(_sync_s(trial) for _ in range(_SYNCS)),
            clock_ahead_s=_clock_ahead_s(trial),
            inherits_group=_try(_inherits_group, trial),
        )
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def judge_folder(facts: FolderFacts, *, shared: bool) -> list[Finding]:
    """The findings of a folder; with `shared` compute nodes must see it too."""
    return [
        _judge_kind(facts, shared=shared),
        _judge_room(facts),
        _judge_names(facts),
        _judge_sync(facts),
        _judge_clock(facts),
        _judge_group(facts),
    ]


def _judge_kind(facts: FolderFacts, *, shared: bool) -> Finding:
    found = f"{facts.path} ({facts.kind})"
    if shared and facts.kind in _NODE_OWN:
        remedy = "Set paths.store, and work, in a folder that the nodes see."
        return fail(AREA, "file system", found, "compute nodes do not see this folder.", remedy)
    if facts.kind.startswith("nfs") and "soft" in facts.options:
        effect = "a slow server makes writes fail that the program takes for done."
        return warn(AREA, "file system", f"{found}, mounted soft", effect, "Ask the site for a hard mount.")
    return Finding(AREA, "file system", found)


def _judge_room(facts: FolderFacts) -> Finding:
    files = "files not counted" if facts.free_files is None else f"{facts.free_files} files"
    found = f"{format_bytes(facts.free_bytes)} and {files} free; a quota may allow less"
    if facts.free_bytes < _LITTLE_ROOM or (facts.free_files or _FEW_FILES) < _FEW_FILES:
        effect = "a sweep's checkpoints may fill it: a trial takes 10 to 30 files."
        return warn(AREA, "room", found, effect, "Set paths.store to a larger file system, or keep_checkpoints=1.")
    return Finding(AREA, "room", found)


def _judge_names(facts: FolderFacts) -> Finding:
    broken = [name for name, works in (("rename", facts.replaces), ("link", facts.links)) if not works]
    if broken:
        effect = "two drivers could run one study, and half-written records be read."
        remedy = "Set paths.store to a POSIX file system (NFS, Lustre, GPFS, BeeGFS)."
        return fail(AREA, "rename and link", f"{' and '.join(broken)} not exclusive", effect, remedy)
    locks = "" if facts.locks else "; no locks, which Windtunnel does not use (an SQLite file of Optuna's does)"
    return Finding(AREA, "rename and link", f"exclusive{locks}")


def _judge_sync(facts: FolderFacts) -> Finding:
    found = f"{1000 * facts.sync_s:.0f} ms for a small durable file"
    if facts.sync_s > _SLOW_SYNC_S:
        effect = "each trial writes some 20 such files: thousands of trials start slowly."
        return warn(AREA, "fsync", found, effect, "Set paths.store to a faster file system, or trials_per_job.")
    return Finding(AREA, "fsync", found)


def _judge_clock(facts: FolderFacts) -> Finding:
    found = f"the file system's is {facts.clock_ahead_s:+.1f} s from this machine's"
    if abs(facts.clock_ahead_s) > _SKEW_S:
        effect = "status and ETA are wrong by so much; leases are not, they compare files with files."
        return warn(AREA, "clock", found, effect, "Ask the site to check NTP on both.")
    return Finding(AREA, "clock", found)


def _judge_group(facts: FolderFacts) -> Finding:
    if facts.inherits_group:
        return Finding(AREA, "group", "new folders inherit it: paths.mode=group works")
    effect = "what one user makes keeps that user's own group: paths.mode=group does not work."
    return warn(
        AREA, "group", "new folders do not inherit it", effect, "Mount without nogrpid, or use another place."
    )


def _holds(mount: str, path: str) -> bool:
    return path == mount or path.startswith(f"{mount.rstrip('/')}/")


def _try(check: Callable[[Path], bool], folder: Path) -> bool:
    try:
        return check(folder)
    except OSError:
        return False


def _replaces(folder: Path) -> bool:
    target, fresh = folder / "name", folder / "fresh"
    target.write_text("old")
    with target.open() as reader:
        fresh.write_text("new")
        fresh.rename(target)
        return reader.read() == "old" and target.read_text() == "new" and not fresh.exists()


def _links_once(folder: Path) -> bool:
    mine, taken = folder / "mine", folder / "taken"
    mine.write_text("")
    os.link(mine, taken)
    try:
        os.link(mine, taken)
    except FileExistsError:
        return True
    return False


def _locks(folder: Path) -> bool:
    with (folder / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    return True


def _inherits_group(folder: Path) -> bool:
    parent = folder / "group"
    parent.mkdir()
    parent.chmod(0o2770)
    (parent / "child").mkdir()
    return bool((parent / "child").stat().st_mode & 0o2000)


def _sync_s(folder: Path) -> float:
    began = time.perf_counter()
    fresh = folder / "sync.tmp"
    with fresh.open("wb") as file:
        file.write(b"x" * 4096)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(folder / "sync")
    return time.perf_counter() - began


def _clock_ahead_s(folder: Path) -> float:
    before = time.time()
    path = folder / "clock"
    path.write_text("")
    os.utime(path)
    return path.stat().st_mtime - (before + time.time()) / 2
