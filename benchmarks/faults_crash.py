"""Death at every file operation of a save: what a fresh look finds then must be the new step or the one before.

A library that is loaded before all others counts the operations, and kills the process at the one that is its turn.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from benchmarks.faults_state import holds_state, link_checkpoints, make_manifest, make_state, open_saver, save_state
from benchmarks.harness import ROOT, PartResult, make_share_row
from windtunnel.checkpoints.manifest import checkpoint_name
from windtunnel.checkpoints.publish import remove_leftovers, set_aside, start_checkpoint
from windtunnel.checkpoints.verify import choose_checkpoint
from windtunnel.errors import InputFileError
from windtunnel.process import run_command

SOURCE = ROOT / "benchmarks" / "native" / "crash_points.c"
MOMENTS = ("before", "within", "after")
"""In the order of the C source's numbers; within is a write that is half done."""
OLDEST, BEFORE, NEW = 1, 2, 3
"""Steps: the first goes by retention, once the last is there."""


@dataclass(frozen=True)
class Order:
    """A save to be done by a child: where, and at which operation it dies; 0 for none."""

    folder: str
    log: str
    asynchronous: bool
    point: int = 0
    moment: int = 0


@dataclass(frozen=True)
class Crash:
    """A point of death: the operation's number, what it was, and when."""

    asynchronous: bool
    point: int
    operation: str
    moment: int


def run_crash_points(quick: bool) -> PartResult:
    """Every operation, before, within and after it, of a save on the spot and of one in the background."""
    with tempfile.TemporaryDirectory(prefix="wt-") as folder, open_server(Path(folder)) as server:
        root = Path(folder)
        prepare(root / "prepared")
        crashes = [crash for asynchronous in (False, True) for crash in list_crashes(server, root, asynchronous)]
        if quick:
            crashes = random.sample(crashes, 4)
        found = [(crash, recover(server, root, crash)) for crash in crashes]
    return _make_result(found)


def prepare(folder: Path) -> None:
    """What a resumed writer may meet: two checkpoints, one that was set aside, and what another left unfinished."""
    for step in (OLDEST, BEFORE, NEW):
        save_state(folder, step)
    set_aside(folder / checkpoint_name(NEW))
    (start_checkpoint(folder, step=NEW) / "rank-00000.bin").write_bytes(b"cut off")


def list_crashes(server: "Server", root: Path, asynchronous: bool) -> list[Crash]:
    """All points of one save, found by letting it end."""
    folder, log = root / "counted", root / "log"
    link_checkpoints(root / "prepared", folder)
    log.unlink(missing_ok=True)
    code = server.save(Order(str(folder), str(log), asynchronous))
    assert code == 0, f"the save that is not killed ended with {code}"
    assert choose_checkpoint(folder).path == folder / checkpoint_name(NEW)
    operations = [line.split(" ")[0] for line in log.read_text().splitlines()]
    shutil.rmtree(folder)
    return [
        Crash(asynchronous, point, operation, moment)
        for point, operation in enumerate(operations, 1)
        for moment in range(len(MOMENTS))
        if operation == "write" or MOMENTS[moment] != "within"
    ]


def recover(server: "Server", root: Path, crash: Crash) -> str:
    """What is wrong after the crash; empty when all is well."""
    folder = root / "crashed"
    link_checkpoints(root / "prepared", folder)
    order = Order(str(folder), str(root / "log"), crash.asynchronous, crash.point, crash.moment)
    try:
        code = server.save(order)
        if code != -signal.SIGKILL:
            return f"it was not killed, but ended with {code}"
        return look(folder) or go_on(folder)
    except Exception as error:  # whatever it is, it is what a resumed run would have met
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)


def look(folder: Path) -> str:
    """Whether the newest that verifies is one of the two, with all its tensors, also once leftovers are gone."""
    first = choose_checkpoint(folder)
    remove_leftovers(folder)
    choice = choose_checkpoint(folder)
    if choice.manifest is None or choice.path is None or choice.path != first.path:
        return f"{first.path} is chosen, then {choice.path}"
    step = choice.manifest.step
    if step not in (BEFORE, NEW) or choice.skipped:
        return f"step {step} is chosen, skipped is {choice.skipped}"
    return "" if holds_state(choice.path, step) else f"step {step} has other tensors"


def go_on(folder: Path) -> str:
    """Whether the run that resumes there can save, and is left with two checkpoints and nothing else."""
    step = int(choose_checkpoint(folder).path.name[-1]) + 1
    saver = open_saver(folder)
    saver.save(make_state(step), make_manifest(step))
    saver.wait()
    names = sorted(path.name for path in folder.iterdir())
    wanted = [checkpoint_name(step - 1), checkpoint_name(step)]
    return "" if names == wanted else f"after another save there are {names}"


class Server:
    """A process with the library and torch loaded, that forks a child for each save."""

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands = commands
        self._answers = answers

    def save(self, order: Order) -> int:
        """The child's exit code, negative for a signal."""
        print(json.dumps(asdict(order)), file=self._commands, flush=True)
        return int(self._answers.readline())


@contextmanager
def open_server(root: Path) -> Iterator[Server]:
    """Start it, and end it."""
    with open_preloaded(root, "benchmarks.faults_crash_saver") as (commands, answers):
        yield Server(commands, answers)


@contextmanager
def open_preloaded(root: Path, module: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run a module with the library, which is built in `root`; its input and output. It is killed at the end."""
    library = build_library(root)
    env = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", module], text=True, env=env, cwd=ROOT, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout
        finally:
            process.kill()  # it has nothing to lose, and taking torch down takes seconds


def build_library(folder: Path) -> Path:
    """Compile the library; raises InputFileError without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise InputFileError("no C compiler `cc` on PATH: apt-get install gcc")
    library = folder / "libcrash_points.so"
    run_command([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"])
    return library


def _make_result(found: Sequence[tuple[Crash, str]]) -> PartResult:
    for crash, wrong in found:
        if wrong:
            print(f"faults: killed {MOMENTS[crash.moment]} {crash.operation} {crash}: {wrong}", flush=True)
    kinds: dict[str, list[bool]] = {}
    for crash, wrong in found:
        kinds.setdefault(f"{MOMENTS[crash.moment]} {crash.operation}", []).append(not wrong)
    rows = tuple(make_share_row(f"recovered: killed {kind}", good) for kind, good in sorted(kinds.items()))
    name = "crash_points_recovered_fraction"
    return PartResult({name: sum(not wrong for _, wrong in found) / len(found)}, {name: len(found)}, rows)
