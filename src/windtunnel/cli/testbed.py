"""`windtunnel testbed`: a real Slurm of several nodes on one machine.

Each action imports what it needs when it runs: the parser is built at every start of the command.
"""

import argparse
import os
import pwd
import shlex
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any


def add_testbed_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `testbed up|status|down|run`."""
    parser = subparsers.add_parser("testbed", help="a real Slurm of several nodes on this machine")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser("up", help="build it (as root with namespaces and shaped links)")
    _add_up_options(up)
    status = actions.add_parser("status", help="show its daemons and nodes")
    down = actions.add_parser("down", help="remove all of it, also a half-made one")
    run = actions.add_parser("run", help="run a command on its login host: `testbed run -- sinfo`")
    for action in (up, status, down, run):
        action.add_argument("--dir", type=Path, default=default_folder(), help="folder of the testbed (%(default)s)")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command and its arguments")
    for action, function in ((up, _up), (status, _status), (down, _down), (run, _run)):
        action.set_defaults(func=function)


def default_folder() -> Path:
    """One testbed a user, unless --dir says otherwise; the name is short because sockets lie below it."""
    return Path(tempfile.gettempdir()) / f"windtunnel-testbed-{os.getuid()}"


def _add_up_options(parser: argparse.ArgumentParser) -> None:
    switch: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
    parser.add_argument("--nodes", type=int, default=8, help="compute nodes (%(default)s)")
    parser.add_argument("--leaves", type=int, default=2, help="leaf switches below the spine (%(default)s)")
    parser.add_argument("--gpus", type=int, default=0, help="pretended GPUs a node (%(default)s)")
    parser.add_argument("--cpus", type=int, default=8, help="cores that a node claims (%(default)s)")
    parser.add_argument("--memory-mib", type=int, default=16000, help="memory that a node claims (%(default)s)")
    parser.add_argument("--accounting", default=True, help="slurmdbd and MariaDB, for sacct", **switch)
    parser.add_argument(
        "--network", default=None, help="a network namespace a node, and shaped links (where permitted)", **switch
    )
    parser.add_argument("--interleave", default=True, help="n0 on leaf0, n1 on leaf1, ...; else in blocks", **switch)
    parser.add_argument("--node-mbit", type=int, default=1000, help="rate of a node's link; 0 is unshaped")
    parser.add_argument("--leaf-mbit", type=int, default=200, help="rate of a leaf's uplink; 0 is unshaped")
    parser.add_argument(
        "--fast-timings", default=True, help="short timeouts for tests; else Slurm's defaults", **switch
    )


def _up(args: argparse.Namespace) -> int:
    from windtunnel.testbed.network import can_use_namespaces
    from windtunnel.testbed.ports import find_ports
    from windtunnel.testbed.spec import ClusterSpec
    from windtunnel.testbed.up import run_up

    network = can_use_namespaces() if args.network is None else args.network
    spec = ClusterSpec(
        folder=args.dir.absolute(),
        user=_read_user(),
        machine=socket.gethostname().partition(".")[0],
        nodes=args.nodes,
        leaves=args.leaves,
        gpus=args.gpus,
        cpus=args.cpus,
        memory_mib=args.memory_mib,
        accounting=args.accounting,
        network=network,
        interleave=args.interleave,
        node_mbit=args.node_mbit,
        leaf_mbit=args.leaf_mbit,
        fast_timings=args.fast_timings,
        ports=find_ports(args.nodes, network=network),
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that a half-made one is removed
    run_up(spec)
    where = "" if args.dir == default_folder() else f"--dir {shlex.quote(str(args.dir))} "
    print(f"testbed: up in {spec.folder}; use it with `windtunnel testbed run {where}-- COMMAND`", flush=True)
    return 0


def _read_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        from windtunnel.errors import ClusterError

        raise ClusterError(
            f"user id {os.geteuid()} has no name on this machine, and Slurm wants one: add it to /etc/passwd"
        ) from None


def _status(args: argparse.Namespace) -> int:
    from windtunnel.testbed.status import run_status

    return 0 if run_status(args.dir.absolute()) else 1


def _down(args: argparse.Namespace) -> int:
    from windtunnel.testbed.down import run_down

    folder = args.dir.absolute()
    if not run_down(folder):
        print(f"testbed: none in {folder}", flush=True)
    return 0


def _run(args: argparse.Namespace) -> int:
    from windtunnel.errors import ClusterError
    from windtunnel.testbed.run import exec_inside

    command = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not command:
        raise ClusterError("testbed run has no command, expected one after --: `windtunnel testbed run -- sinfo`")
    exec_inside(args.dir.absolute(), command)
