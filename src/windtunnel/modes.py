"""Who may read and write a store that several users share.

The umask says it, for every file that a process makes, whichever library makes it. A shared store keeps in a file of
its own which mode holds below it, so that jobs, ranks and colleagues need no setting to follow it.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel.artifacts import write_atomic
from windtunnel.errors import SettingsError

MODE_FILE = ".mode"
"""In a store that is shared: `group` or `public`."""
OWN = "own"
_UMASKS = {"group": 0o007, "public": 0o002}
_FOLDER_BITS = {"group": 0o2770, "public": 0o2775}  # set-group-ID: what is made below keeps the store's group
_OTHERS = 0o007


def open_store(store: Path, mode: str) -> str:
    """Let this process make its files as `mode` says, from now on; returns the mode that holds.

    `own` follows what the store itself says. Raises SettingsError when it says another, or cannot be shared.
    """
    said = find_mode(store)
    if mode not in (OWN, said):
        if said != OWN:
            raise SettingsError(
                f"paths.mode={mode}, but {_find_marker(store)} says {said}: leave paths.mode out, or let the store's"
                f" owner change that file and type: {_render_chmod(store, mode)}"
            )
        _share(store, mode)
    holding = said if mode == OWN else mode
    os.umask(_umask_of(holding))
    return holding


@contextmanager
def umask_of_store(paths: Iterable[Path]) -> Iterator[None]:
    """Make files as the store says in which one of `paths` lies; in none, nothing for others than the group."""
    modes = {find_mode(path) for path in paths}
    before = os.umask(_umask_of(next((mode for mode in _UMASKS if mode in modes), OWN)))
    try:
        yield
    finally:
        os.umask(before)


def find_mode(path: Path) -> str:
    """What the store says that holds `path`; `own` outside of one that is shared."""
    marker = _find_marker(path)
    return _read_marker(marker) if marker is not None else OWN


def _find_marker(path: Path) -> Path | None:
    whole = path.absolute()
    markers = (folder / MODE_FILE for folder in (whole, *whole.parents))
    return next((marker for marker in markers if _read_marker(marker) in _UMASKS), None)


def _read_marker(marker: Path) -> str:
    try:
        return marker.read_text().strip()
    except OSError:
        return ""


def _share(store: Path, mode: str) -> None:
    """Give a new or empty store the mode's bits, and the file that tells everybody."""
    wanted = _FOLDER_BITS[mode]
    store.mkdir(parents=True, exist_ok=True)
    found = store.stat()
    if found.st_mode & wanted != wanted or found.st_mode & ~wanted & _OTHERS:
        owner = "" if found.st_uid == os.geteuid() else f"let user {found.st_uid}, who owns it, "
        if owner or any(store.iterdir()):
            raise SettingsError(
                f"paths.mode={mode}, but {store} has mode {found.st_mode & 0o7777:04o} and is not this user's, or has"
                f" files from before: {owner}type: {_render_chmod(store, mode)}"
            )
        store.chmod(wanted)
    os.umask(_UMASKS[mode])
    write_atomic(store / MODE_FILE, f"{mode}\n".encode())


def _render_chmod(store: Path, mode: str) -> str:
    others = "o-rwx" if mode == "group" else "o+rX-w"
    return f"chmod -R g+rwX,{others} {store}; find {store} -type d -exec chmod g+s {{}} +"


def _umask_of(mode: str) -> int:
    if mode in _UMASKS:
        return _UMASKS[mode]
    now = os.umask(0o077)
    os.umask(now)
    return now | _OTHERS
