"""A claim: of several drivers that find a trial unsubmitted at the same moment, one submits it.

Studies share trials through a store, so that the lease of a study does not keep their drivers apart. A claim
lasts only from the last look at a ledger until the job's id stands in it.

A claim is a link to a file that names its owner, so that it never stands without that name, and a full disk leaves
none. One file serves a thousand claims: a link costs a file system much less than a file. One that names nobody is
wreckage.

A dead driver's claim is removed under a rule: whoever wants to remove it first makes a second, exclusive link to it.
What that link holds is judged, and none but the link's maker may remove the claim; so that no claim taken since is
removed for the dead one. A link that its maker left behind is removed once it is old.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from windtunnel.ledger.lease import read_process_start

CLAIM = ".claim"
GRAVE = ".claim.stale"
STALE_AFTER_S = 600.0
"""Age past which another host's claim is a dead driver's: several times what an sbatch takes that tries again and
again while the controller is busy. On its own host a claim counts while its process lives, however long that is."""
NAMELESS_STALE_AFTER_S = 5.0
"""Age past which a claim that names nobody is wreckage."""


@dataclass(frozen=True)
class Claimant:
    """The process that a claim names; `started` tells it from a later process of the same number."""

    host: str
    pid: int
    started: str


@contextmanager
def name_claimant(folder: Path) -> Iterator[Path | None]:
    """A file in `folder`, made if need be, that names this process, for claims taken within the block.

    Its time is the claims' own: make a new one for each round of them. None where the folder takes no file.
    """
    path = _name_new(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_render_own())
    except OSError:
        with suppress(OSError):
            path.unlink()
        yield None
        return
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def take_claim(trial_dir: Path, *, named: Path | None = None, stale_after_s: float = STALE_AFTER_S) -> bool:
    """Whether this process may submit the trial now; end it by `drop_claim`. False while another one is at it.

    `named` is the file of `name_claimant`, where there is one. A dead driver's claim is removed, and is not taken
    before the next call: what it left behind is looked at first. Raises OSError, and leaves no claim, when the folder
    cannot be written.
    """
    trial_dir.mkdir(parents=True, exist_ok=True)
    path = trial_dir / CLAIM
    if not path.exists() and _link_own(path, named):
        return True
    _remove_stale(path, stale_after_s)
    return False


def read_claimant(trial_dir: Path) -> Claimant | None:
    """The process that claims the trial; None for no claim, or one that names nobody."""
    try:
        return _parse((trial_dir / CLAIM).read_text(errors="replace"))
    except OSError:
        return None


def drop_claim(trial_dir: Path) -> None:
    """Let the claim of this process go; another's, which took it for a dead driver's, stays."""
    path = trial_dir / CLAIM
    try:
        if path.read_text() == _render_own():
            path.unlink()
    except FileNotFoundError:
        pass


def _link_own(path: Path, named: Path | None) -> bool:
    """Whether the claim is this process's now; False when another one was faster."""
    if named is not None:
        # Another file system, or one link too many: a file beside the claim tells whether it can be written at all.
        with suppress(OSError):
            return _link(named, path)
    mine = _name_new(path.parent)
    try:
        mine.write_text(_render_own())
        return _link(mine, path)
    finally:
        mine.unlink(missing_ok=True)


def _link(source: Path, path: Path) -> bool:
    try:
        os.link(source, path)
    except FileExistsError:
        return False
    return True


def _name_new(folder: Path) -> Path:
    return folder / f"{CLAIM}.{uuid.uuid4().hex}.tmp"


def _render_own() -> str:
    return f"{socket.gethostname()} {os.getpid()} {_read_start(os.getpid())}\n"


@cache
def _read_start(pid: int) -> str | None:
    """Of this process, which may take a thousand claims at once."""
    return read_process_start(pid)


def _remove_stale(path: Path, stale_after_s: float) -> None:
    grave = path.with_name(GRAVE)
    try:
        if not _is_stale(path, stale_after_s):
            return
        os.link(path, grave)
    except FileNotFoundError:
        return
    except FileExistsError:
        _remove_left(grave)
        return
    try:
        # It may be another claim by now than was looked at; this one stays until its owner, or this call, ends it.
        if _is_stale(grave, stale_after_s):
            path.unlink(missing_ok=True)
    finally:
        grave.unlink(missing_ok=True)


def _is_stale(path: Path, stale_after_s: float) -> bool:
    claimant = _parse(path.read_text(errors="replace"))
    if claimant is not None and claimant.host == socket.gethostname():
        return read_process_start(claimant.pid) != claimant.started
    limit_s = stale_after_s if claimant is not None else NAMELESS_STALE_AFTER_S
    return time.time() - path.stat().st_mtime > limit_s


def _parse(text: str) -> Claimant | None:
    words = text.split()
    if len(words) != 3 or not words[1].isdecimal():
        return None
    return Claimant(words[0], int(words[1]), words[2])


def _remove_left(grave: Path) -> None:
    # A link is there for a few calls only; the file's ctime tells when it was made or lost one.
    try:
        if time.time() - grave.stat().st_ctime > STALE_AFTER_S:
            grave.unlink()
    except FileNotFoundError:
        pass
