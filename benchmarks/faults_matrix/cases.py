"""The public failure cases that damage, interrupt or lose what was saved, replayed on any side of the matrix."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.faults_matrix.bed import Attempt, Bed
from benchmarks.faults_matrix.journal import Order, read_journal
from benchmarks.faults_matrix.model import CRASH, FILL
from benchmarks.faults_matrix.outcome import count_outcomes, describe_found, describe_resume, is_intact
from benchmarks.faults_matrix.sides import LIGHTNING, OURS, SUBMITIT, Side
from windtunnel.errors import CommandError
from windtunnel.process import run_command

NEWEST = 10
"""Step of the newest state in most cases."""
BEFORE, WITHIN, AFTER = 0, 1, 2
"""Moments of a file operation, by the crash library's numbers."""
_MOST_POINTS = 5
_SAVES_OVER = "10:ARM@1,13:KILL"
_DISK_BYTES = 24 * 2**20


@dataclass(frozen=True)
class Case:
    """A public failure case."""

    name: str
    replay: Callable[[Bed, Side], str]
    """What became of it, in words."""
    excused: Mapping[str, str] = field(default_factory=dict)
    """Sides that it cannot befall, and why."""


def flip_bit(bed: Bed, side: Side) -> str:
    """One bit in the middle of the file that a resume reads."""
    order, before = leave_state(bed, side)
    path = side.find_newest(order)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    return resume_after_damage(bed, side, order, before)


def cut_short(bed: Bed, side: Side) -> str:
    """Half of that file is gone."""
    order, before = leave_state(bed, side)
    path = side.find_newest(order)
    os.truncate(path, path.stat().st_size // 2)
    return resume_after_damage(bed, side, order, before)


def damage_all(bed: Bed, side: Side) -> str:
    """No state that was saved is whole."""
    order, before = leave_state(bed, side)
    for path in order.checkpoints.rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            os.truncate(path, 1000)
    return resume_after_damage(bed, side, order, before)


def remove_all(bed: Bed, side: Side) -> str:
    """The folder is empty, as on a scratch file system that was swept; the rest of the run's folder is there."""
    order, before = leave_state(bed, side, supervised=True)
    shutil.rmtree(order.checkpoints)
    order.checkpoints.mkdir()
    return resume_after_damage(bed, side, order, before)


def kill(bed: Bed, side: Side) -> str:
    """SIGKILL, of the second attempt."""
    order, _ = leave_state(bed, side)
    second = replace(order, attempt=2)
    before = bed.run(side, second, faults="13:KILL")
    after = bed.run(side, replace(order, attempt=3))
    return describe_resume(before, after, intact=find_intact(bed, side, order, after))


def kill_in_save(bed: Bed, side: Side) -> str:
    """SIGKILL within the middle write of a save, before each operation of it that is no write, after each opening.

    Where something can be mounted, checkpoints lie on another file system than /tmp, as they do on a cluster.
    """
    log = bed.root / "operations"
    log.unlink(missing_ok=True)
    try_save(bed, side, log, point=0, moment=BEFORE)
    lines = [line.partition(" ")[0] for line in log.read_text().splitlines()]
    return count_outcomes([try_save(bed, side, log, point=point, moment=at) for point, at in choose_points(lines)])


def choose_points(operations: list[str]) -> list[tuple[int, int]]:
    """Numbers, from 1, and moments of the operations to be killed at; the last ones where there are many."""
    writes = [number for number, name in enumerate(operations, 1) if name == "write"]
    others = [number for number, name in enumerate(operations, 1) if name != "write"]
    opened = [number for number, name in enumerate(operations, 1) if name.startswith("open")]
    middle = [(writes[len(writes) // 2], WITHIN)] if writes else []
    return middle + [(each, BEFORE) for each in others[-_MOST_POINTS:]] + [(each, AFTER) for each in opened[-3:]]


def try_save(bed: Bed, side: Side, log: Path, *, point: int, moment: int) -> str:
    """Save twice, the second time with the library armed; what the next attempt makes of it."""
    order = bed.make_order(side)
    with mount_small(order.checkpoints):
        env = {CRASH: json.dumps([str(order.checkpoints), str(log), point, moment])}
        if side == SUBMITIT:
            bed.run(side, order, faults="6:USR2")
            order = replace(order, attempt=2)
            before = bed.run(side, order, faults="6:ARM,6:USR2", env=env)
        else:
            before = bed.run(side, order, faults="10:ARM,13:KILL", env=env)
        after = bed.run(side, replace(order, attempt=order.attempt + 1))
        return describe_resume(before, after, intact=find_intact(bed, side, order, after))


def save_over(bed: Bed, side: Side) -> str:
    """Two ranks save again where they saved before, and one of them dies as it opens its first file."""
    log = bed.root / "operations"
    log.unlink(missing_ok=True)
    order = bed.make_order(side, ranks=2, same_folder=True)
    bed.run(side, order, faults=_SAVES_OVER, env={CRASH: json.dumps([str(order.checkpoints), str(log), 0, BEFORE])})
    names = [line.partition(" ")[0] for line in log.read_text().splitlines()]
    point = next(number for number, name in enumerate(names, 1) if name.startswith("open"))
    order = bed.make_order(side, ranks=2, same_folder=True)
    env = {CRASH: json.dumps([str(order.checkpoints), str(log), point, BEFORE])}
    before = bed.run(side, order, faults=_SAVES_OVER, env=env)
    after = bed.run(side, replace(order, attempt=2))
    return describe_resume(before, after, intact=find_intact(bed, side, order, after))


def fill_disk(bed: Bed, side: Side) -> str:
    """Room for half of what the next save writes; after it failed there is room again."""
    order = bed.make_order(side)
    with mount_small(order.checkpoints) as mounted:
        if not mounted:
            return "not tried: nothing can be mounted here"
        bed.run(side, order, faults=side.saves_at)
        left_bytes = side.find_newest(order).stat().st_size // 2
        filler = order.checkpoints / "filler"
        saves = "3:FILL,3:USR2" if side == SUBMITIT else "3:FILL"
        env = {FILL: json.dumps([str(filler), left_bytes])}
        before = bed.run(side, replace(order, attempt=2), faults=saves, env=env)
        filler.unlink()
        after = bed.run(side, replace(order, attempt=3))
        return describe_resume(before, after, intact=find_intact(bed, side, order, after))


@contextmanager
def mount_small(folder: Path) -> Iterator[bool]:
    """A file system of a few MiB at `folder`, where this process may mount one."""
    folder.mkdir(exist_ok=True)
    try:
        run_command(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "windtunnel", str(folder)])
    except CommandError:
        yield False
        return
    try:
        yield True
    finally:
        run_command(["umount", str(folder)])


def leave_state(bed: Bed, side: Side, *, supervised: bool = False) -> tuple[Order, Attempt]:
    """A first attempt that ended after step 12, or 10, with its newest state of step 10."""
    order = bed.make_order(side, supervised=supervised)
    return order, bed.run(side, order, faults=side.saves_at)


def resume_after_damage(bed: Bed, side: Side, order: Order, before: Attempt) -> str:
    after = bed.run(side, replace(order, attempt=2))
    intact = find_intact(bed, side, order, after)
    return describe_found(before, after, newest=NEWEST, intact=intact)


def find_intact(bed: Bed, side: Side, order: Order, after: Attempt) -> bool:
    """Whether what was resumed from is what was saved."""
    whole = bed.find_whole(side, order) if side == OURS else None
    return is_intact(after, read_journal(Path(order.folder)), whole)


CASES = (
    Case("a bit flips in a checkpoint", flip_bit),
    Case("the newest checkpoint is cut short", cut_short),
    Case("killed within a save", kill_in_save),
    Case(
        "a save over an older one is cut off",
        save_over,
        {LIGHTNING.name: "one rank writes one file", SUBMITIT.name: "one rank writes one file"},
    ),
    Case("the disk is full", fill_disk),
    Case("all checkpoints are damaged", damage_all),
    Case("all checkpoints are gone", remove_all),
    Case("killed without a word", kill),
)
