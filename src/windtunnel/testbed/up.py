"""`testbed up`: build the network, start the daemons, and wait until every node is idle.

Each wait ends with its event or with the deadline; any failure shows the daemon's last lines and removes everything.
"""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from windtunnel.errors import BusyError, CommandError
from windtunnel.process import run_command
from windtunnel.testbed import places
from windtunnel.testbed.daemons import (
    Daemon,
    plan_database,
    plan_munge,
    plan_slurmctld,
    plan_slurmdbd,
    plan_slurmds,
)
from windtunnel.testbed.down import remove_testbed
from windtunnel.testbed.hosts import enter_argv, host_env, render_enter, render_hosts, render_resolv_conf
from windtunnel.testbed.network import namespace_names, run_network
from windtunnel.testbed.preflight import check_preflight
from windtunnel.testbed.processes import is_alive, is_answering, is_listening, read_boot_id, start_process
from windtunnel.testbed.render import render_gres_conf, render_slurm_conf, render_slurmdbd_conf, render_topology_conf
from windtunnel.testbed.run import run_inside
from windtunnel.testbed.spec import ClusterSpec, all_hosts, cluster_name, node_hosts
from windtunnel.testbed.state import ClusterState, Started, lock_folder, read_state, write_state

DEADLINE_S = 120.0  # it takes 10 s on an idle machine
_LOG_LINES = 15


class Builder:
    """A testbed being built: holds the record, and writes it before and after each step."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.spec = state.spec
        self.deadline = time.monotonic() + DEADLINE_S
        self.path = os.environ.get("PATH", "")

    def start(self, daemon: Daemon) -> Started:
        """Start a daemon on its host and record it."""
        env = {**host_env(self.spec), **dict(daemon.env)}
        log = places.log_file(self.spec.folder, daemon.name)
        argv = enter_argv(self.spec, daemon.host, ("env", "--chdir=/", *daemon.argv))
        started = start_process(daemon.name, argv, env=env, log=log)
        self.state = write_state(replace(self.state, processes=(*self.state.processes, started)))
        return started

    def wait(self, daemon: Daemon, started: Started) -> None:
        """Wait until the daemon answers."""

        def is_ready() -> bool:
            return is_answering(daemon.socket) if daemon.socket else is_listening(started.pid, daemon.port)

        self.wait_until(is_ready, f"{daemon.name} to answer", (started,))

    def wait_until(self, is_ready: Callable[[], bool], what: str, needed: tuple[Started, ...]) -> None:
        """Poll for an event; raises CommandError at the deadline, or when a process that it needs has ended."""
        while not is_ready():
            for started in needed:
                if not is_alive(started):
                    raise CommandError(f"{started.name} ended while it started" + self.read_log(started.name))
            if time.monotonic() > self.deadline:
                names = ", ".join(started.name for started in needed)
                lines = self.read_log(needed[0].name) if needed else ""
                raise CommandError(f"waited {DEADLINE_S:.0f} s for {what} ({names})" + lines)
            time.sleep(0.03)

    def read_log(self, name: str) -> str:
        """The last lines of a daemon's log, indented."""
        path = places.log_file(self.spec.folder, name)
        lines = path.read_text(errors="replace").splitlines()[-_LOG_LINES:] if path.exists() else []
        return "; its last lines:" + "".join(f"\n    {line}" for line in lines) if lines else " without a word"


def run_up(spec: ClusterSpec) -> ClusterState:
    """Build the testbed; a dead or half-made one in the same folder is removed first."""
    check_preflight(spec)
    made_folder = not spec.folder.exists()
    spec.folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(spec.folder):
        made_folder |= _clear_leftovers(spec.folder)
        state = ClusterState(spec, "starting", read_boot_id(), made_folder, namespace_names(spec))
        builder = Builder(write_state(state))
        try:
            build_testbed(builder)
        finally:
            if builder.state.phase != "up":  # an interrupt, too, must leave nothing behind
                remove_testbed(builder.state)
        return builder.state


def build_testbed(builder: Builder) -> None:
    """All steps, in order; the record says `up` at the end."""
    spec, started_s = builder.spec, time.monotonic()
    write_files(spec)
    if spec.network:
        run_network(spec)
        _say(started_s, f"network of {spec.nodes} nodes on {spec.leaves} leaves")
        munge = plan_munge(spec, builder.path)
        builder.wait(munge, builder.start(munge))
    if spec.accounting:
        _start_accounting(builder)
        _say(started_s, "accounting")
    controller = plan_slurmctld(spec, builder.path)
    processes = [builder.start(controller)]
    builder.wait(controller, processes[0])
    processes += [builder.start(daemon) for daemon in plan_slurmds(spec, builder.path)]
    builder.wait_until(lambda: _all_idle(spec), f"{spec.nodes} idle nodes", tuple(processes))
    _say(started_s, f"Slurm with {spec.nodes} idle nodes")
    builder.state = write_state(replace(builder.state, phase="up"))


def write_files(spec: ClusterSpec) -> None:
    """Every file that the daemons and hosts read."""
    folder = spec.folder
    for name in places.SUBFOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for host in node_hosts(spec):
        for name in ("spool", "tmp"):  # PMIx sockets of nodes that share a temporary folder collide
            (folder / name / host.name).mkdir()
    config = places.config_folder(folder)
    (config / "slurm.conf").write_text(render_slurm_conf(spec))
    (config / "topology.conf").write_text(render_topology_conf(spec))
    (config / "gres.conf").write_text(render_gres_conf(spec))
    if spec.accounting:
        (config / "slurmdbd.conf").touch(mode=0o600)
        (config / "slurmdbd.conf").write_text(render_slurmdbd_conf(spec))
    (folder / "etc" / "hosts").write_text(render_hosts(spec))
    (folder / "etc" / "resolv.conf").write_text(render_resolv_conf())
    bind_resolver = Path("/etc/resolv.conf").exists()
    for host in all_hosts(spec):
        places.enter_script(folder, host.name).write_text(render_enter(spec, host.name, bind_resolver=bind_resolver))
    key = folder / "run" / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    _write_gpus(spec)


def _write_gpus(spec: ClusterSpec) -> None:
    """Slurm wants character devices; links to /dev/null need no privilege."""
    for index in range(spec.gpus):
        (spec.folder / "dev" / f"nvidia{index}").symlink_to("/dev/null")


def _start_accounting(builder: Builder) -> None:
    spec = builder.spec
    create, database = plan_database(spec, builder.path)
    run_command(create, env=host_env(spec), cwd=Path("/"))
    builder.wait(database, builder.start(database))
    slurmdbd = plan_slurmdbd(spec, builder.path)
    builder.wait(slurmdbd, builder.start(slurmdbd))
    lines = (
        f"add cluster {cluster_name(spec.folder)}",
        "add account windtunnel",
        f"add user {spec.user} account=windtunnel",
    )
    run_inside(builder.spec, ["sacctmgr", "-i"], stdin="\n".join(lines) + "\n")


def _all_idle(spec: ClusterSpec) -> bool:
    found = run_inside(spec, ["sinfo", "--noheader", "--Node", "--partition=main", "--format=%T"], check=False)
    return found.stdout.split() == ["idle"] * spec.nodes


def _clear_leftovers(folder: Path) -> bool:
    """Remove what an earlier testbed left in `folder`, and return whether the folder itself was its own."""
    state = read_state(folder)
    if state is None:
        return False
    alive = [started for started in state.processes if started.name == "slurmctld" and is_alive(started)]
    if state.phase == "up" and state.boot_id == read_boot_id() and alive:
        raise BusyError(f"a testbed is up in {folder} already: use it, or remove it with `windtunnel testbed down`")
    print(f"testbed: clearing what an earlier one left in {folder}", flush=True)
    remove_testbed(replace(state, made_folder=False))  # the folder stays: its lock is held
    return state.made_folder


def _say(started_s: float, what: str) -> None:
    print(f"testbed: {time.monotonic() - started_s:4.1f} s  {what}", flush=True)
