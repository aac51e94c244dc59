"""Starts an attempt's processes and watches them to their end. One that fails ends the others; none outlives us."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from windtunnel.attempt.limits import DRAIN_S, FAILURE_GRACE_S, LINGER_S, PRESS_S, STOP_GRACE_S
from windtunnel.attempt.logs import BoundedLog, LabelledLogs, Sink
from windtunnel.attempt.orphans import no_orphans
from windtunnel.attempt.plan import LaunchPlan, Process, StopBy
from windtunnel.attempt.pump import Pump
from windtunnel.errors import ClusterError
from windtunnel.slurm.job import signal_own_steps

_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# What a shell exits with for a program that it cannot execute, or cannot find.
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127


@dataclass(frozen=True)
class Exit:
    """A process's end: its place in the plan, its exit code (negative for a signal), and whether we sought it."""

    index: int
    code: int
    stopped: bool


@dataclass
class StopRequest:
    """The first signal that asked this process to stop, if any."""

    signum: int | None = None
    at: float | None = None
    """When it came, in seconds since 1970 UTC."""

    def receive(self, signum: int, _frame: object) -> None:
        """A signal handler; only the first signal counts."""
        if self.signum is None:
            self.signum, self.at = signum, time.time()


@dataclass
class Watch:
    """The processes alive, how the others ended (in order), and the stop under way."""

    pump: Pump
    alive: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    groups: list[int] = field(default_factory=list)
    """Process groups that were started, by their leaders' pids."""
    exits: list[Exit] = field(default_factory=list)
    launched: list[LabelledLogs] = field(default_factory=list)
    """What launchers say of the ranks that they started."""
    reason: str = ""
    """Why the rest is being stopped: `signal`, `time`, `failure`; empty while nothing is."""
    asked: bool = False
    pressed: bool = False
    terminate_at: float = float("inf")
    kill_at: float = float("inf")


def run_ranks(
    plan: LaunchPlan,
    *,
    stop: StopRequest,
    beat: Callable[[], None],
    finish: Callable[[], None] = lambda: None,
    stop_grace_s: float = STOP_GRACE_S,
) -> tuple[tuple[Exit, ...], str]:
    """Run the plan's processes to their end, in order of exit, and why they were stopped (empty: they were not).

    `beat` is called all the while, and `finish` after it: whatever child process this one has then is killed. On
    any exception the processes are killed first.
    """
    watch = Watch(Pump())
    with no_orphans(), _ended_groups(watch):
        _run(watch, plan, stop=stop, beat=beat, stop_grace_s=stop_grace_s)
        finish()
    watch.pump.finish(DRAIN_S)
    return tuple(watch.exits), watch.reason


@contextmanager
def catch_stop() -> Iterator[StopRequest]:
    """Turn SIGTERM and SIGINT into a StopRequest inside the block."""
    request = StopRequest()
    wanted = (signal.SIGTERM, signal.SIGINT)
    # The driver starts local trials with SIGINT blocked, so that Ctrl-C in its terminal reaches it alone.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
    before = {signum: signal.signal(signum, request.receive) for signum in wanted}
    try:
        yield request
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _run(watch: Watch, plan: LaunchPlan, *, stop: StopRequest, beat: Callable[[], None], stop_grace_s: float) -> None:
    started = time.monotonic()
    for index in range(len(plan.processes)):
        _start(watch, plan, index)
    watch.pump.start()
    while watch.alive:
        beat()
        _collect(watch)
        now = time.monotonic()
        late = plan.time_limit_s is not None and now - started > plan.time_limit_s
        _schedule_stop(watch, now, signalled=stop.signum is not None, late=late, stop_grace_s=stop_grace_s)
        _carry_out_stop(watch, plan, now)
        time.sleep(_POLL_S)


@contextmanager
def _ended_groups(watch: Watch) -> Iterator[None]:
    """Whatever happens inside, no process of the groups is left."""
    try:
        yield
    finally:
        for group in watch.groups:
            _signal_group(group, signal.SIGKILL)
        for child in watch.alive.values():
            child.wait()


def _start(watch: Watch, plan: LaunchPlan, index: int) -> None:
    """Start the plan's process `index`.

    A program that cannot be executed has failed, as a shell would say; a launcher that is not there is the
    cluster's fault, and raises ClusterError.
    """
    process = plan.processes[index]
    log = _open_log(process, plan.log_limit_bytes)
    if isinstance(log, LabelledLogs):
        watch.launched.append(log)
    try:
        child = _popen(process)
    except OSError as error:
        how = f"cannot start {process.argv[0]} on {os.uname().nodename}: {error.strerror}"
        if plan.launcher:
            raise ClusterError(f"{how}: is it on PATH of that node, or does a module bring it?") from error
        log.write(f"windtunnel: {how}\n".encode())
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        watch.exits.append(Exit(index, code, stopped=False))
        return
    assert child.stdout is not None
    watch.alive[index] = child
    watch.pump.add(os.dup(child.stdout.fileno()), log)
    child.stdout.close()
    watch.groups.append(child.pid)


def _open_log(process: Process, limit_bytes: int) -> Sink:
    if process.labelled_ranks:
        folder, ranks = process.log.parent, process.labelled_ranks
        return LabelledLogs(folder, process.log, ranks=ranks, limit_bytes=limit_bytes)
    return BoundedLog(process.log, limit_bytes)


def _popen(process: Process) -> subprocess.Popen[bytes]:
    env: Mapping[str, str] = {**os.environ, **process.env}
    parent = os.getpid()
    return subprocess.Popen(
        process.argv,
        env=env,
        cwd=process.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: _die_with(parent),
    )


def _die_with(parent: int) -> None:
    # The kernel kills the rank when its supervisor dies, even by SIGKILL, so that none is left behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _collect(watch: Watch) -> None:
    for index, child in list(watch.alive.items()):
        code = child.poll()
        if code is not None:
            watch.exits.append(Exit(index, code, stopped=watch.kill_at != float("inf")))
            del watch.alive[index]


def _schedule_stop(watch: Watch, now: float, *, signalled: bool, late: bool, stop_grace_s: float) -> None:
    if signalled or late:
        if watch.reason not in ("signal", "time"):
            watch.reason = "signal" if signalled else "time"
            watch.terminate_at = min(watch.terminate_at, now)
    elif not watch.reason and watch.kill_at == float("inf") and _has_failed(watch):
        watch.reason = "failure"
        watch.terminate_at = now + FAILURE_GRACE_S
    elif watch.exits and watch.terminate_at == float("inf"):
        watch.terminate_at = now + LINGER_S
    if watch.terminate_at <= now and watch.kill_at == float("inf"):
        watch.kill_at = now + stop_grace_s


def _has_failed(watch: Watch) -> bool:
    return any(exit_.code for exit_ in watch.exits) or any(log.task_failed for log in watch.launched)


def _carry_out_stop(watch: Watch, plan: LaunchPlan, now: float) -> None:
    if watch.terminate_at <= now and not watch.asked:
        watch.asked = True
        # The others of a rank that failed have nothing to save: they are ended.
        in_order = watch.reason in ("signal", "time")
        for child in watch.alive.values():
            ask_to_stop(child.pid, plan.stop_by if in_order else StopBy.SIGTERM)
    if now > watch.kill_at and not watch.pressed:
        watch.pressed = True
        for child in watch.alive.values():
            _signal_group(child.pid, signal.SIGTERM)  # srun then kills its tasks, which nobody else here can
    if now > watch.kill_at + PRESS_S:
        for child in watch.alive.values():
            _signal_group(child.pid, signal.SIGKILL)


def ask_to_stop(pid: int, how: StopBy) -> None:
    """Ask the ranks that process `pid` stands for to end in order; where that is refused, by SIGTERM."""
    if how is StopBy.SIGUSR1:
        _signal_process(pid, signal.SIGUSR1)
    elif how is StopBy.SIGTERM or not signal_own_steps(os.environ, signal.SIGTERM):
        _signal_group(pid, signal.SIGTERM)


def _signal_process(pid: int, signum: int) -> None:
    # Not to its group: srun's shepherd is there as well, whom a signal would end.
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        pass


def _signal_group(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        pass
