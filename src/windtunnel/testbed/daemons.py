"""The daemons of a testbed: what each is started with, and what shows that it is ready."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import ClusterError
from windtunnel.testbed.places import database_socket, munge_socket
from windtunnel.testbed.spec import ClusterSpec, login_host, node_hosts

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # a user's PATH often lacks these


@dataclass(frozen=True)
class Daemon:
    """One process to start on `host`; ready when it answers on `socket` or listens on `port`."""

    name: str
    host: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    socket: Path | None = None
    port: int = 0


def needed_tools(spec: ClusterSpec) -> tuple[str, ...]:
    """The programs that must be installed."""
    tools = ["slurmctld", "slurmd", "sinfo", "scontrol"]
    if spec.network:
        tools += ["munged", "ip", "tc", "nsenter", "unshare", "mount", "umount"]
    if spec.accounting:
        tools += ["slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db"]
    return tuple(tools)


def find_tool(name: str, path: str) -> str:
    """Where the program is; raises ClusterError that says how to get it."""
    found = shutil.which(name, path=f"{path}:{_SYSTEM_PATH}")
    if found is None:
        raise ClusterError(f"the testbed needs {name}, which is not installed: run `make system-deps` as root")
    return found


def plan_munge(spec: ClusterSpec, path: str) -> Daemon:
    """munged with its own key and socket; --force because the folder may lie under a sticky /tmp."""
    run = spec.folder / "run"
    argv = (
        find_tool("munged", path),
        "--foreground",
        "--force",
        f"--socket={munge_socket(spec.folder)}",
        f"--key-file={run}/munge.key",
        f"--pid-file={run}/munged.pid",
        f"--log-file={spec.folder}/log/munged.munge.log",
        f"--seed-file={run}/munge.seed",
        "--num-threads=4",
    )
    return Daemon("munged", login_host(spec).name, argv, socket=munge_socket(spec.folder))


def plan_database(spec: ClusterSpec, path: str) -> tuple[tuple[str, ...], Daemon]:
    """The command that creates MariaDB's files, and MariaDB itself, small and without durability."""
    options = (
        f"--datadir={spec.folder}/db/data",
        f"--user={spec.user}",
        "--innodb-log-file-size=8M",
        "--innodb-buffer-pool-size=32M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
    )
    create = (
        find_tool("mariadb-install-db", path),
        "--no-defaults",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
        *options,
    )
    socket = database_socket(spec.folder)
    serve = (
        find_tool("mariadbd", path),
        "--no-defaults",
        "--skip-networking",
        "--skip-grant-tables",  # the socket lies in a folder of our own
        f"--socket={socket}",
        f"--pid-file={spec.folder}/run/mariadb.pid",
        f"--tmpdir={spec.folder}/db",
        *options,
    )
    return create, Daemon("mariadbd", login_host(spec).name, serve, socket=socket)


def plan_slurmdbd(spec: ClusterSpec, path: str) -> Daemon:
    """slurmdbd; MariaDB's client library takes the socket from the environment."""
    return Daemon(
        "slurmdbd",
        login_host(spec).name,
        (find_tool("slurmdbd", path), "-D"),
        env=(("MYSQL_UNIX_PORT", str(database_socket(spec.folder))),),
        port=spec.ports.database,
    )


def plan_slurmctld(spec: ClusterSpec, path: str) -> Daemon:
    """slurmctld on the login host."""
    argv = (find_tool("slurmctld", path), "-D", "-c")
    return Daemon("slurmctld", login_host(spec).name, argv, port=spec.ports.controller)


def plan_slurmds(spec: ClusterSpec, path: str) -> tuple[Daemon, ...]:
    """One slurmd a node; `sinfo` shows when they are ready."""
    slurmd = find_tool("slurmd", path)
    return tuple(
        Daemon(f"slurmd-{host.name}", host.name, (slurmd, "-D", "-N", host.name)) for host in node_hosts(spec)
    )
