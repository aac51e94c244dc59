"""A node of a testbed that loses its power, and comes back; one that loses a mount."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from virtual_cluster import Testbed, wait_for

from windtunnel.process import run_command
from windtunnel.testbed.daemons import plan_slurmds
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.places import log_file, namespace_file
from windtunnel.testbed.processes import start_process


def kill_node(testbed: Testbed, name: str) -> None:
    """Kill every process of the node at once, slurmd first, and let the controller know that it is down."""
    while pids := _find_pids(testbed, name):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    testbed.run("scontrol", "update", f"nodename={name}", "state=down", "reason=it lost its power")


def revive_node(testbed: Testbed, name: str) -> None:
    """Start the node's slurmd again, and wait until the node takes jobs."""
    daemon = next(each for each in plan_slurmds(testbed.spec, os.environ["PATH"]) if each.host == name)
    argv = enter_argv(testbed.spec, name, ("env", "--chdir=/", *daemon.argv))
    start_process(daemon.name, argv, env=host_env(testbed.spec), log=log_file(testbed.spec.folder, daemon.name))
    wait_for(lambda: _is_idle(testbed, name), 60)


def _find_pids(testbed: Testbed, name: str) -> list[int]:
    """Processes in the node's network, the oldest first."""
    network = namespace_file(testbed.spec.folder, name).stat()
    return sorted(pid for pid in _list_pids() if _is_in(pid, (network.st_dev, network.st_ino)))


def _list_pids() -> list[int]:
    # A zombie's network cannot be read, so that it does not count.
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_in(pid: int, network: tuple[int, int]) -> bool:
    try:
        found = Path(f"/proc/{pid}/ns/net").stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == network


def _is_idle(testbed: Testbed, name: str) -> bool:
    # By itself a node is back with the registration of its slurmd, some time after that has started.
    testbed.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
    return testbed.run("sinfo", "--noheader", f"--nodes={name}", "--format=%T").stdout.split()[:1] == ["idle"]


@contextmanager
def read_only(testbed: Testbed, name: str, folder: Path) -> Iterator[None]:
    """The folder cannot be written on that node, though it can on all others: its jobs see slurmd's own mounts."""
    enter = ("nsenter", f"--target={_find_pids(testbed, name)[0]}", "--mount", "--")
    run_command([*enter, "mount", "--bind", str(folder), str(folder)])
    try:
        run_command([*enter, "mount", "-o", "remount,bind,ro", str(folder)])
        yield
    finally:
        run_command([*enter, "umount", str(folder)])
