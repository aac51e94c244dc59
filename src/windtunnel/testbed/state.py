"""The record of a testbed: written before each thing is made, so that a later command can remove all of it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, BusyError, ClusterError
from windtunnel.testbed.places import state_file
from windtunnel.testbed.spec import ClusterSpec

_LOCK_S = 3.0
_LOCK_POLL_S = 0.05


@dataclass(frozen=True)
class Started:
    """A process that the testbed started; the start time tells it from a later one with the same id."""

    name: str
    pid: int
    start_ticks: int


@dataclass(frozen=True)
class ClusterState:
    """`testbed.json`."""

    SCHEMA: ClassVar[str] = "windtunnel.testbed/1"

    spec: ClusterSpec
    phase: Literal["starting", "up"]
    boot_id: str
    made_folder: bool
    """Whether the folder is the testbed's own, to be removed with it."""
    namespaces: tuple[str, ...]
    processes: tuple[Started, ...] = ()


def read_state(folder: Path) -> ClusterState | None:
    """The testbed in `folder`, or None where there is none."""
    if not state_file(folder).exists():
        return None
    if state_file(folder).stat().st_uid != os.geteuid():  # root would run what another user wrote there
        raise ClusterError(f"the testbed in {folder} is another user's: choose another --dir")
    try:
        return read_artifact(state_file(folder), ClusterState)
    except ArtifactError as error:
        raise ClusterError(
            f"{error}; what the testbed runs is not known without it: end the processes that name {folder}, "
            f"unmount what is mounted below it, and remove it"
        ) from error


def need_state(folder: Path) -> ClusterState:
    """The testbed in `folder`; raises ClusterError where none is up."""
    state = read_state(folder)
    if state is None or state.phase != "up":
        raise ClusterError(f"no testbed is up in {folder}: start one with `windtunnel testbed up`, or name its --dir")
    return state


def write_state(state: ClusterState) -> ClusterState:
    """Publish the record, and return it."""
    write_artifact(state_file(state.spec.folder), state)
    return state


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder against a second `up` or `down`; the lock ends with the process, however that ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    # A child that a killed process had just forked holds its lock for the moment until it runs its own program.
    deadline = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BusyError(f"another `testbed up` or `down` is at work in {folder}: wait for it") from error
        time.sleep(_LOCK_POLL_S)
