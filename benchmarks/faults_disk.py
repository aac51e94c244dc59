"""Saves that a full disk cuts off at a random byte: what was there stays, nothing is left, the next one works."""

import os
import random
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults_state import make_manifest, make_state, open_saver, save_state
from benchmarks.harness import PartResult, make_share_row
from windtunnel.checkpoints.manifest import checkpoint_name, list_checkpoints
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.comm.base import Comm
from windtunnel.comm.single import SingleComm
from windtunnel.errors import CommandError, StorageError
from windtunnel.process import run_command
from windtunnel.units import MIB

OLDEST, BEFORE, NEW = 1, 2, 3
STATE_MIB = 5.0
_DISK_BYTES = 24 * MIB
_DISK_INODES = 64
_NEEDED_INODES = 4
"""Of a checkpoint: its folder and three files."""
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Disk:
    """A small file system, or a folder of a large one; with two checkpoints, and the bytes that a third takes."""

    root: Path
    checkpoint_bytes: int
    is_small: bool

    @property
    def folder(self) -> Path:
        """Where the checkpoints lie."""
        return self.root / "checkpoints"


Case = Callable[[Disk, random.Random, bool], str]
"""Fills the disk, saves (in the background if so told), and says what is wrong; empty when all is well."""


def run_disk_full(quick: bool) -> PartResult:
    """Kinds in turn, each on the spot and in the background; where nothing can be mounted, a limit on files alone."""
    cases, generator = (4 if quick else 56), random.Random()
    found: dict[str, list[str]] = {}
    with open_disk() as disk:
        kinds = list(CASES) if disk.is_small else ["a file's limit"]
        for number in range(cases):
            kind = kinds[number % len(kinds)]
            wrong = run_case(disk, CASES[kind], generator, number // len(kinds) % 2 == 1)
            found.setdefault(kind, []).append(wrong)
            if wrong:
                print(f"faults: {kind}: {wrong}", flush=True)
    good = {kind: [not wrong for wrong in each] for kind, each in found.items()}
    fraction = sum(sum(each) for each in good.values()) / cases
    rows = tuple(make_share_row(f"kept: {kind}", each) for kind, each in good.items())
    return PartResult({"disk_full_kept_fraction": fraction}, {"disk_full_kept_fraction": cases}, rows)


@contextmanager
def open_disk() -> Iterator[Disk]:
    """A tmpfs of a few MiB, where this process may mount one, with two checkpoints on it."""
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        root = Path(folder)
        is_small = _mount(root)
        try:
            save_state(root / "checkpoints", OLDEST, mib=STATE_MIB)
            free_bytes = _free_bytes(root)
            save_state(root / "checkpoints", BEFORE, mib=STATE_MIB)
            used_bytes = free_bytes - _free_bytes(root) if is_small else int(STATE_MIB * MIB)
            yield Disk(root, used_bytes, is_small)
        finally:
            if is_small:
                run_command(["umount", str(root)])


def run_case(disk: Disk, case: Case, generator: random.Random, asynchronous: bool) -> str:
    """What is wrong in one case; the disk is then as it was before."""
    try:
        return case(disk, generator, asynchronous) or _save_again(disk)
    finally:
        _make_room(disk)
        shutil.rmtree(disk.folder)
        for step in (OLDEST, BEFORE):
            save_state(disk.folder, step, mib=STATE_MIB)


def fill_before(disk: Disk, generator: random.Random, asynchronous: bool) -> str:
    """No room when the save is begun."""
    _fill(disk, generator)
    return _expect_refusal(disk, asynchronous)


def fill_meanwhile(disk: Disk, generator: random.Random, asynchronous: bool) -> str:
    """Room enough when it is asked for, and gone when it is needed."""

    class Neighbour(SingleComm):
        """Somebody else writes a large file just after rank 0 has told the others that there is room."""

        def allgather(self, value: Any) -> list[Any]:
            _fill(disk, generator)
            return super().allgather(value)

    return _expect_refusal(disk, asynchronous, Neighbour())


def use_up_inodes(disk: Disk, generator: random.Random, asynchronous: bool) -> str:
    """Room for bytes, and none for as many files."""
    fillers = disk.root / "fillers"
    fillers.mkdir()
    left = generator.randrange(_NEEDED_INODES)
    for number in range(os.statvfs(disk.root).f_favail - left):
        (fillers / str(number)).touch()
    return _expect_refusal(disk, asynchronous)


def limit_file(disk: Disk, generator: random.Random, asynchronous: bool) -> str:
    """What a quota does: the file system has room, and this process may not use it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (generator.randrange(int(STATE_MIB * MIB)), before[1]))
    try:
        return _expect_refusal(disk, asynchronous)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


CASES: dict[str, Case] = {
    "full before": fill_before,
    "filled meanwhile": fill_meanwhile,
    "no inodes": use_up_inodes,
    "a file's limit": limit_file,
}


def _expect_refusal(disk: Disk, asynchronous: bool, comm: Comm | None = None) -> str:
    saver = open_saver(disk.folder, asynchronous=asynchronous, comm=comm)
    try:
        saver.save(make_state(NEW, mib=STATE_MIB), make_manifest(NEW))
        saver.wait()
    except StorageError:
        return _find_wrong(disk, (OLDEST, BEFORE))
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    return "it was saved"


def _save_again(disk: Disk) -> str:
    _make_room(disk)
    saver = open_saver(disk.folder)
    saver.save(make_state(NEW, mib=STATE_MIB), make_manifest(NEW))
    saver.wait()
    return _find_wrong(disk, (BEFORE, NEW))


def _find_wrong(disk: Disk, steps: tuple[int, ...]) -> str:
    names = sorted(path.name for path in disk.folder.iterdir())
    if names != [checkpoint_name(step) for step in steps]:
        return f"there are {names}"
    return "; ".join(reason for path in list_checkpoints(disk.folder) for reason in verify_checkpoint(path))


def _fill(disk: Disk, generator: random.Random) -> None:
    """Leave less than a checkpoint needs; each third time so little less that its last files are what fails."""
    pages = disk.checkpoint_bytes // _PAGE_BYTES
    left = generator.choice([generator.randrange(pages), generator.randrange(pages), pages - generator.randint(1, 8)])
    fill_bytes = _free_bytes(disk.root) - left * _PAGE_BYTES
    with (disk.root / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, fill_bytes)


def _make_room(disk: Disk) -> None:
    (disk.root / "filler").unlink(missing_ok=True)
    shutil.rmtree(disk.root / "fillers", ignore_errors=True)


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _mount(folder: Path) -> bool:
    try:
        run_command(
            ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},nr_inodes={_DISK_INODES}", "windtunnel", str(folder)]
        )
    except CommandError:
        return False
    return True
