"""The one function that runs commands: a list in, a record out, and a failure that explains itself."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import CommandError

STDERR_LINES = 40


@dataclass(frozen=True)
class Finished:
    """What a command left behind: its exit code (negative for a signal), output and wall time."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    wall_s: float


def run_command(
    argv: Sequence[str],
    *,
    timeout_s: float | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = True,
) -> Finished:
    """Run `argv` to its end and return what it printed.

    `env` adds to the inherited environment. On a time-out or an interruption the whole process group is killed.
    Raises CommandError when the command is not found, runs past `timeout_s`, or (with `check`) fails.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"cannot run {argv[0]}: {error.strerror}; is it installed and on PATH?") from error
    try:
        with ExitStack() as unfinished:
            unfinished.callback(_kill_group, child)
            stdout, stderr = child.communicate(stdin, timeout_s)
            unfinished.pop_all()
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{render_argv(argv)}\n  ran past {timeout_s} s and was killed") from error
    finished = Finished(tuple(argv), child.returncode, stdout, stderr, time.monotonic() - started)
    if check and finished.code:
        raise CommandError(describe_failure(finished))
    return finished


def describe_failure(finished: Finished) -> str:
    """The command, its exit code, and the last lines of its stderr, indented."""
    lines = (finished.stderr or finished.stdout).strip().splitlines()[-STDERR_LINES:]
    body = "".join(f"\n    {line}" for line in lines)
    return f"{render_argv(finished.argv)}\n  exited with {finished.code}{body}"


def render_argv(argv: Sequence[str]) -> str:
    """The command as one would type it."""
    return subprocess.list2cmdline(list(argv))


def _kill_group(child: subprocess.Popen[str]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.communicate()
