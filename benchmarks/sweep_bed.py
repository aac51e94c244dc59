"""The testbed on which the sweep's figures are measured: one of the part's own, or the one that the caller is on."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT
from windtunnel.process import Finished, run_command
from windtunnel.testbed.hosts import MARK, enter_argv, host_env
from windtunnel.testbed.places import slurm_conf
from windtunnel.testbed.spec import ClusterSpec, login_host
from windtunnel.testbed.state import need_state

PARTITION = "main"
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Every side may keep its compiled modules, as an installed package does, whatever the caller's environment says."""
_UP_TIMEOUT_S = 300.0
_QUIET_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Bed:
    """A running testbed, seen from its login host."""

    spec: ClusterSpec

    def argv(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command as this machine starts it there; the process id is the command's own."""
        return enter_argv(self.spec, login_host(self.spec).name, words)

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the environment of commands there gains."""
        found = [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
        return {**host_env(self.spec), **COMPILED, "PYTHONPATH": os.pathsep.join(filter(None, found)), **(more or {})}

    def run(
        self, words: Sequence[str], *, timeout_s: float = 120.0, cwd: Path | None = None, check: bool = True
    ) -> Finished:
        """Run a command to its end."""
        return run_command(self.argv(words), env=self.env(), timeout_s=timeout_s, cwd=cwd, check=check)

    def calm(self) -> None:
        """Keep the jobs' daemons from reading the process table each 30 s: a thousand of them take both cores."""
        with slurm_conf(self.spec.folder).open("a") as file:
            file.write("JobAcctGatherFrequency=0\n")
        self.run(["scontrol", "reconfigure"])

    def wait_until_quiet(self) -> None:
        """Return when no job is left, so that one side does not pay for the other."""
        wait_for(lambda: not self.run(["squeue", "--noheader"]).stdout.strip(), _QUIET_TIMEOUT_S, "an empty queue")


@contextmanager
def open_bed(*options: str, quick: bool) -> Iterator[Bed]:
    """A testbed, removed at the end. A quick run on the login host of one, as a test does it, uses that."""
    here = os.environ.get(MARK)
    if quick and here:
        yield Bed(need_state(Path(here)).spec)
        return
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = Path(folder) / "bed"
        _run_testbed("up", bed, *options)
        try:
            yield Bed(need_state(bed).spec)
        finally:
            _run_testbed("down", bed)


def wait_for(what: Callable[[], bool], timeout_s: float, name: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s for {name}"
        time.sleep(0.2)


def _run_testbed(action: str, bed: Path, *options: str) -> None:
    argv = [sys.executable, "-m", "windtunnel.cli.main", "testbed", action, f"--dir={bed}", *options]
    run_command(argv, timeout_s=_UP_TIMEOUT_S)
