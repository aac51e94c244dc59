"""`testbed run`: a command on the login host of a testbed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from windtunnel.process import Finished, run_command
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import ClusterSpec, login_host
from windtunnel.testbed.state import need_state


def run_inside(spec: ClusterSpec, argv: Sequence[str], *, stdin: str | None = None, check: bool = True) -> Finished:
    """Run a command on the login host to its end."""
    return run_command(
        enter_argv(spec, login_host(spec).name, argv), env=host_env(spec), stdin=stdin, check=check, timeout_s=60
    )


def exec_inside(folder: Path, argv: Sequence[str]) -> NoReturn:
    """Become the command: its exit code, signals and terminal are then this process's own."""
    spec = need_state(folder).spec
    command = enter_argv(spec, login_host(spec).name, argv)
    os.execvpe(command[0], command, {**os.environ, **host_env(spec)})
