"""Writers that are stopped, succeeded and only then continued: they must publish nothing, and break nothing.

A writer is a process with a real saver under a lease. It is stopped at a file operation of a save, exactly between
the fence's question and the renaming, or at any moment; its successor takes the lease, chooses and publishes.
What a job that outlives its slurmd can still do is done by its processes; `faults_stale_slurm` has real ones as well.
"""

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from benchmarks.faults_crash import open_preloaded
from benchmarks.faults_stale_slurm import Lost, run_lost_slurmds
from benchmarks.faults_state import holds_state, link_checkpoints, make_manifest, make_state, save_state
from benchmarks.harness import PartResult, Row, make_share_row
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import list_checkpoints, read_manifest
from windtunnel.checkpoints.publish import remove_leftovers
from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.checkpoints.verify import choose_checkpoint, verify_checkpoint
from windtunnel.comm.single import SingleComm
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import STALE_AFTER_S, bury_holder, read_live_holder, take_lease

BETWEEN, OPERATION, MOMENT = "between question and renaming", "at a file operation", "at any moment"
DEAD, SILENT, BURIED = "its process is gone", "its host is silent", "it was buried"
"""How the successor comes by the lease."""
BEFORE, AFTER = 0, 2
"""Moments of an operation, by the C source's numbers."""
PREPARED, ZOMBIE_STEPS, LAST_STEP = (1, 2), (3, 4), 5
"""Saved before; saved by the stale writer, and stopped meanwhile; its last save, which the fence must prevent."""
OTHER_STATE = 1000
"""Added to a step, the step whose state the successor saves: it trains on differently."""
JOBS = 24
"""Whose slurmd is killed."""
MIB = 1.0
FENCED, FAILED = 3, 4
"""Exit codes of a writer that the fence stopped, and of one that ended otherwise."""


@dataclass(frozen=True)
class Order:
    """A writer to be started and stopped: at an operation (from 1), or so many seconds after its first save began."""

    trial: str
    log: str
    asynchronous: bool
    point: int = 0
    moment: int = BEFORE
    delay_s: float = -1.0


@dataclass(frozen=True)
class Case:
    """How a writer is stopped and succeeded, and whether it is continued before the successor's first publication."""

    kind: str
    order: Order
    taken: str
    at_once: bool


@dataclass(frozen=True)
class Found:
    """What a stale writer did."""

    case: Case
    published: tuple[str, ...]
    """Checkpoints of its own that appeared after the successor chose."""
    harmed: tuple[str, ...]
    """What the successor has no more."""
    code: int


def run_stale(quick: bool) -> PartResult:
    """Writers of all kinds in turn; in full a hundred and two, and jobs whose slurmd is killed."""
    seed = random.randrange(2**32)
    lost = [] if quick else run_lost_slurmds(JOBS, random.Random(seed))
    with tempfile.TemporaryDirectory(prefix="wt-") as folder, open_server(Path(folder)) as server:
        bed = Bed(Path(folder), server, random.Random(seed))
        kinds = (BETWEEN, OPERATION, MOMENT) * (1 if quick else 34)
        found = [bed.try_case(kind) for kind in kinds]
    for each in found:
        if each.published or each.harmed or each.code != FENCED:
            print(f"faults: a stale writer (seed {seed}): {each}", flush=True)
    for job in lost:
        if job.published or job.harmed or not job.ended:
            print(f"faults: a job whose slurmd was killed: {job}", flush=True)
    return make_result(found, lost)


class Bed:
    """Tries cases in fresh folders, all with the same two checkpoints in them."""

    def __init__(self, root: Path, server: "Server", chance: random.Random) -> None:
        self._root = root
        self._server = server
        self._random = chance
        self._count = 0
        for step in PREPARED:
            save_state(root / "prepared", step, mib=MIB)
        self._operations = {asynchronous: self._count_operations(asynchronous) for asynchronous in (False, True)}
        self._wall_s = self._time_saves()

    def try_case(self, kind: str) -> Found:
        """One case; one whose writer ended before it was stopped is drawn again."""
        while True:
            case = self._draw(kind)
            if self._server.start(case.order) is None:
                break
            shutil.rmtree(case.order.trial)
        try:
            return succeed(case, self._server)
        finally:
            shutil.rmtree(case.order.trial)

    def _draw(self, kind: str) -> Case:
        asynchronous = self._random.random() < 0.5
        order = self._prepare(asynchronous)
        operations = self._operations[asynchronous]
        if kind == MOMENT:
            order = replace(order, delay_s=self._random.uniform(0, self._wall_s))
        elif kind == BETWEEN:
            renamings = [point for point, line in enumerate(operations, 1) if is_publication(line)]
            order = replace(order, point=self._random.choice(renamings))
        else:
            point, moment = self._random.randint(1, len(operations)), self._random.choice((BEFORE, AFTER))
            order = replace(order, point=point, moment=moment)
        return Case(kind, order, self._random.choice((DEAD, SILENT, BURIED)), self._random.random() < 0.5)

    def _prepare(self, asynchronous: bool) -> Order:
        self._count += 1
        trial = self._root / f"t{self._count}"
        link_checkpoints(self._root / "prepared", trial / "checkpoints")
        return Order(str(trial), str(self._root / "log"), asynchronous)

    def _count_operations(self, asynchronous: bool) -> list[str]:
        """Those of the first saves, by letting a writer end."""
        order = self._prepare(asynchronous)
        Path(order.log).unlink(missing_ok=True)
        code = self._server.start(order)
        assert code == 0, f"the writer that nobody succeeds ended with {code}"
        shutil.rmtree(order.trial)
        lines = Path(order.log).read_text().splitlines()
        last = [number for number, line in enumerate(lines) if is_publication(line)][len(ZOMBIE_STEPS) - 1]
        return lines[: last + 1]

    def _time_saves(self) -> float:
        order = self._prepare(asynchronous=True)
        started = time.monotonic()
        self._server.start(order)
        shutil.rmtree(order.trial)
        return time.monotonic() - started


def is_publication(line: str) -> bool:
    """Whether a line of the log is the renaming of a whole checkpoint."""
    operation, _, path = line.partition(" ")
    return operation == "rename" and path.startswith("/checkpoints/.tmp-") and path.count("/") == 2


def succeed(case: Case, server: "Server") -> Found:
    """Take the stopped writer's trial over, continue it, and see what it does."""
    folder = TrialFolder(Path(case.order.trial))
    checkpoints = folder.path / "checkpoints"
    fall_silent(folder.lease, case.taken)
    lease = take_lease(folder.lease, "trial")
    remove_leftovers(checkpoints)
    choice = choose_checkpoint(checkpoints)
    assert choice.path is not None
    assert choice.manifest is not None
    step, known = choice.manifest.step, {path.name: path.stat().st_ino for path in list_checkpoints(checkpoints)}
    fence = Fence(folder.lease, lease.generation)
    saver = Saver(checkpoints, comm=SingleComm(), fence=fence, retention=Retention(99), asynchronous=True)
    code = server.finish() if case.at_once else None
    for new in (step + 1, step + 2):
        saver.save(make_state(OTHER_STATE + new, mib=MIB), make_manifest(new))
        saver.wait()
        code = server.finish() if code is None else code
    stale, own = [], []
    for path in list_checkpoints(checkpoints):
        if read_manifest(path).generation == lease.generation:
            own.append(path)
        elif known.get(path.name) != path.stat().st_ino:
            stale.append(path.name)
    harmed = find_harmed(choice.path, step, own)
    return Found(case, tuple(stale), tuple(harmed), code)


def find_harmed(chosen: Path, step: int, own: Sequence[Path]) -> list[str]:
    """What of the checkpoint that was chosen, and of the two made since, is not as it was."""
    if verify_checkpoint(chosen) or not holds_state(chosen, step, mib=MIB):
        return [chosen.name]
    steps = [read_manifest(path).step for path in own]
    lost = [f"step {new}" for new in (step + 1, step + 2) if new not in steps]
    changed = [
        f"step {new}"
        for path, new in zip(own, steps, strict=True)
        if verify_checkpoint(path) or not holds_state(path, OTHER_STATE + new, mib=MIB)
    ]
    return lost + changed


def fall_silent(lease: Path, how: str) -> None:
    """Let the lease look as its holder's end leaves it: on this host, where its process is gone, or on another."""
    if how == DEAD:
        return
    record = lease / "1"
    record.write_text(json.dumps({**json.loads(record.read_text()), "host": "elsewhere"}))
    if how == SILENT:
        long_ago = time.time() - STALE_AFTER_S - 10
        os.utime(record, (long_ago, long_ago))
        return
    holder = read_live_holder(lease)
    assert holder is not None
    assert bury_holder(lease, holder)


class Server:
    """A process with the library and torch loaded, that forks a writer for each order."""

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands = commands
        self._answers = answers

    def start(self, order: Order) -> int | None:
        """None once the writer is stopped; its exit code if it ended before."""
        print(json.dumps(asdict(order)), file=self._commands, flush=True)
        said = self._answers.readline().strip()
        return None if said == "stopped" else int(said)

    def finish(self) -> int:
        """Continue the stopped writer; its exit code."""
        print("continue", file=self._commands, flush=True)
        return int(self._answers.readline())


@contextmanager
def open_server(root: Path) -> Iterator[Server]:
    """Start it, and end it."""
    with open_preloaded(root, "benchmarks.faults_stale_writer") as (commands, answers):
        yield Server(commands, answers)


def make_result(found: Sequence[Found], lost: Sequence[Lost] = ()) -> PartResult:
    """The share of writers that published, and how each kind fared."""
    labels: dict[str, list[Found]] = {}
    for each in found:
        for label in (each.case.kind, f"succeeded because {each.case.taken}"):
            labels.setdefault(label, []).append(each)
    rows = [
        make_share_row(f"published nothing: {label}", [not each.published for each in some])
        for label, some in labels.items()
    ]
    rows.append(make_share_row("left all to its successor", [not each.harmed for each in found]))
    rows.append(make_share_row("ended by the fence", [each.code == FENCED for each in found]))
    rows += make_lost_rows(lost)
    name, published = "stale_publishes", [bool(each.published) for each in (*found, *lost)]
    return PartResult({name: sum(published) / len(published)}, {name: len(published)}, tuple(rows))


def make_lost_rows(lost: Sequence[Lost]) -> list[Row]:
    """How jobs fared whose slurmd was killed."""
    rows = []
    for kind in dict.fromkeys(job.kind for job in lost):
        some = [job for job in lost if job.kind == kind]
        rows.append(make_share_row(f"slurmd killed, {kind}: published nothing", [not job.published for job in some]))
        rows.append(make_share_row(f"slurmd killed, {kind}: left all", [not job.harmed for job in some]))
        rows.append(make_share_row(f"slurmd killed, {kind}: ended by itself", [job.ended for job in some]))
    return rows
