"""How tests talk to a testbed."""

import os
import pwd
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windtunnel.process import Finished, run_command
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.ports import find_ports
from windtunnel.testbed.spec import ClusterSpec, login_host

JOB_DEADLINE_S = 120.0
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY")


@dataclass(frozen=True)
class Testbed:
    """A running testbed, and how tests talk to it."""

    __test__ = False
    spec: ClusterSpec

    def run(
        self,
        *argv: str,
        check: bool = True,
        timeout_s: float = 120,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run a command on the login host."""
        command = enter_argv(self.spec, login_host(self.spec).name, argv)
        both = {**host_env(self.spec), **(env or {})}
        return run_command(command, check=check, timeout_s=timeout_s, cwd=cwd, env=both)

    def submit(self, *options: str, cwd: Path) -> str:
        """Submit a job with sbatch and return its id."""
        return self.run("sbatch", "--parsable", *options, cwd=cwd).stdout.strip()

    def states(self, job: str) -> list[str]:
        """Slurm's states of a job, one an array task."""
        text = self.run("scontrol", "show", "job", "--oneliner", job).stdout
        return [field.partition("=")[2] for field in text.split() if field.startswith("JobState=")]

    def wait(self, job: str, states: tuple[str, ...] = ENDED, deadline_s: float = JOB_DEADLINE_S) -> list[str]:
        """Wait until every task of a job is in one of the states, and return them. (`sbatch --wait` polls slowly.)"""
        deadline = time.monotonic() + deadline_s
        while not set(found := self.states(job)) <= set(states):
            assert time.monotonic() < deadline, f"job {job} is {found} after {deadline_s} s"
            time.sleep(0.1)
        return found


def make_spec(folder: Path, *, nodes: int = 2, network: bool = True, accounting: bool = False) -> ClusterSpec:
    """What `testbed up` would ask for."""
    return ClusterSpec(
        folder=folder,
        user=pwd.getpwuid(os.geteuid()).pw_name,
        machine=socket.gethostname().partition(".")[0],
        nodes=nodes,
        leaves=2,
        gpus=4,
        network=network,
        accounting=accounting,
        ports=find_ports(nodes, network=network),
    )


def wait_for(what: Callable[[], bool], deadline_s: float = 30.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < deadline, f"waited {deadline_s} s"
        time.sleep(0.01)


def read_if_there(path: Path) -> str:
    """A file's text, empty before it exists."""
    return path.read_text() if path.exists() else ""
