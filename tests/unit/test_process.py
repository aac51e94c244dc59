"""The one function that runs commands."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windtunnel.errors import CommandError
from windtunnel.process import run_command


def test_output_and_code_are_kept():
    done = run_command([sys.executable, "-c", "import sys; print('out'); sys.exit(3)"], check=False)
    assert (done.stdout, done.code) == ("out\n", 3)


def test_a_failure_shows_command_code_and_indented_stderr():
    with pytest.raises(CommandError, match=r"exited with 4\n    it broke"):
        run_command([sys.executable, "-c", "import sys; print('it broke', file=sys.stderr); sys.exit(4)"])


def test_a_missing_command_is_named():
    with pytest.raises(CommandError, match="no-such-command"):
        run_command(["no-such-command"])


def test_a_command_past_its_time_is_killed_with_its_children():
    started = time.monotonic()
    with pytest.raises(CommandError, match=r"ran past 0\.3 s"):
        run_command(["sh", "-c", "sleep 60 & sleep 60"], timeout_s=0.3)
    assert time.monotonic() - started < 10


def test_an_interrupted_command_is_killed_with_its_children(tmp_path):
    pids = tmp_path / "pids"
    # The shell itself ends meanwhile; its child, which holds the pipe, must be killed.
    # Its input comes when the command is being waited for: earlier is too early to interrupt.
    shell = f"read go; sleep 60 & echo $! > {pids}; kill -INT $PPID"
    # A job in a shell's background ignores SIGINT, and so would all that it starts.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heed}; from windtunnel.process import run_command; run_command(['sh', '-c', {shell!r}], stdin='go\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == -signal.SIGINT
    deadline = time.monotonic() + 10
    while is_alive(int(pids.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(pids.read_text()))


def test_a_command_that_ended_leaves_its_background_children_alone(tmp_path):
    run_command(["sh", "-c", f"sleep 60 >/dev/null 2>&1 & echo $! > {tmp_path / 'pid'}"])
    child = int((tmp_path / "pid").read_text())
    os.kill(child, signal.SIGKILL)  # raises where it is gone already


def test_input_reaches_the_command():
    assert run_command(["cat"], stdin="hello").stdout == "hello"


def test_env_adds_to_the_inherited_one():
    done = run_command(["sh", "-c", 'echo "$WT_TEST:${PATH:+path}"'], env={"WT_TEST": "1"})
    assert done.stdout == "1:path\n"


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
