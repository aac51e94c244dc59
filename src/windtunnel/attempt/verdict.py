"""How an attempt ended, from what it left behind: exit codes, errors that ranks wrote, logs. Pure."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.attempt.hang import Hang, describe_hang
from windtunnel.attempt.ranks import Exit
from windtunnel.attempt.task_ends import find_task_ends, name_task
from windtunnel.records.trial import STOPPED_CODE, STORAGE_CODE, Verdict
from windtunnel.slurm.cause import Cause

_OOM_TYPES = frozenset({"OutOfMemoryError", "MemoryError"})
_STORAGE_TYPE = "StorageError"
"""A full or failing file system is not the trial's fault: not final, and the same command goes on with room."""
_STORAGE_LAST_WORDS = ("no space left on device", "disk quota exceeded", "read-only file system", "file too large")
_MAKE_ROOM = "make room, then the same command goes on"
_OOM_TEXTS = ("oom-kill", "oom_kill", "out of memory", "out_of_memory")
# A program's last words, in the languages and libraries that programs are written in.
_OOM_LAST_WORDS = (
    "out of memory",
    "out_of_memory",
    "outofmemoryerror",
    "memoryerror",
    "bad_alloc",
    "cannot allocate",
)
_NODE_TEXTS = ("node failure", "node_fail", "unable to contact slurm", "communication connection failure")
_NO_START_TEXTS = ("unable to create step", "unable to confirm allocation", "application launch failed")
_SIGNALLED = {
    Cause.TIME_LIMIT: (Verdict.TIMEOUT, "stopped at its time limit"),
    Cause.PREEMPTION: (Verdict.PREEMPTED, "preempted by Slurm"),
    Cause.REQUEUE: (Verdict.PREEMPTED, "requeued by Slurm"),
    Cause.CANCEL: (Verdict.CANCELLED, "cancelled by scancel"),
    Cause.NODE: (Verdict.NODE_FAIL, "its node was taken from it"),
    Cause.UNKNOWN: (Verdict.PREEMPTED, "stopped by a signal before its time limit, nobody says why"),
}
# Exit codes that a shell, and srun, give a process that a signal ended: 128 + the signal.
_SHELL_SIGNAL_BASE = 128


@dataclass(frozen=True)
class RankError:
    """`error-rank-R.json`: the exception that a rank ended with."""

    rank: int
    type: str
    text: str
    """The exception as Python prints it last: `ValueError: …`."""
    at: float
    secondary: bool = False
    """Whether it merely saw another rank go."""


@dataclass(frozen=True)
class Ending:
    """What an attempt left behind."""

    exits: tuple[Exit, ...]
    """In order of time."""
    reason: str
    """Why the supervisor stopped the rest: `signal`, `time`, `failure` or nothing."""
    errors: tuple[RankError, ...]
    oom_kills: int
    """Processes of this host that the kernel killed for memory meanwhile."""
    launcher_log: str
    """srun's own words; empty without srun."""
    log_tails: Mapping[int, str]
    """Last line of each rank's log."""
    done_problem: str | None
    """None when DONE.json validates; otherwise why not."""
    slurm: bool
    cause: Cause = Cause.UNKNOWN
    """Why the job was signalled, if it was; unknown without Slurm."""
    hang: Hang | None = None
    """What ranks that gave up waiting left behind."""
    launcher: str = ""
    """Who started the ranks in our stead, if anyone: `srun`, `mpiexec`."""
    rank_hosts: tuple[str, ...] = ()
    """Host of each rank, where that is known."""
    host: str = ""
    """The supervisor's own, and its launcher's."""
    notes: tuple[str, ...] = ()
    """What else the verdict's reader should know."""


def judge_ending(ending: Ending) -> tuple[Verdict, str]:
    """The verdict, and its evidence in a sentence or two."""
    verdict, evidence = _judge(ending)
    return verdict, "; ".join((evidence, *ending.notes))


def _judge(ending: Ending) -> tuple[Verdict, str]:
    failed = next((exit_ for exit_ in ending.exits if exit_.code and not exit_.stopped), None)
    if failed is None and ending.reason == "failure":
        # srun itself ends last, and because we stop it; it has told which of its tasks failed.
        failed = next((exit_ for exit_ in ending.exits if exit_.code), None)
    if ending.done_problem is None:
        late = f", though {_name_exit(ending, failed)} afterwards" if failed else ""
        return Verdict.COMPLETED, f"DONE.json is valid{late}"
    if ending.reason == "time":
        return Verdict.TIMEOUT, "stopped at its time limit"
    if ending.hang is not None:
        return Verdict.LOST, describe_hang(ending.hang)
    if ending.reason == "signal" or any(exit_.code == STOPPED_CODE for exit_ in ending.exits):
        return _judge_signal(ending)
    if failed is None and (lost := _find_node_loss(ending)):  # srun may end with 0 then, before any signal comes
        return Verdict.NODE_FAIL, lost
    if failed is None:
        return Verdict.FAILED, f"all ranks ended with code 0, but {ending.done_problem}"
    return _judge_failure(ending, failed)


def describe_signal(cause: Cause) -> tuple[Verdict, str]:
    """The verdict of an attempt that Slurm told to end, with its evidence."""
    return _SIGNALLED[cause]


def is_process_death(ending: Ending, verdict: Verdict) -> bool:
    """Whether ranks went for a reason that is neither their own nor their node's: they may start again here."""
    return verdict == Verdict.LOST and not _find_no_start(ending)


def count_exit_code(ending: Ending) -> int:
    """The first failure's exit code; 0 when none failed."""
    return next((exit_.code for exit_ in ending.exits if exit_.code), 0)


def find_cause(errors: tuple[RankError, ...]) -> RankError | None:
    """The earliest error that is not merely a consequence of another rank's end."""
    return min(errors, key=lambda error: (error.secondary, error.at), default=None)


def _judge_signal(ending: Ending) -> tuple[Verdict, str]:
    if ending.slurm:
        return describe_signal(ending.cause)
    return Verdict.CANCELLED, "stopped by a signal"


def _judge_failure(ending: Ending, failed: Exit) -> tuple[Verdict, str]:
    how = _name_exit(ending, failed)
    launcher = ending.launcher_log.lower()
    cause = find_cause(ending.errors)
    if cause is not None and (cause.type in _OOM_TYPES or "out of memory" in cause.text.lower()):
        return Verdict.OOM, _name_error(ending, cause)
    if cause is not None and cause.type == _STORAGE_TYPE:
        return Verdict.CANCELLED, f"{_name_error(ending, cause)}; {_MAKE_ROOM}"
    full = _find_full(ending)
    if full:
        return Verdict.CANCELLED, f"{full}: its file system takes no more; {_MAKE_ROOM}"
    if any(text in launcher for text in _OOM_TEXTS):
        return Verdict.OOM, f"{how}: killed for memory"
    lost = _find_node_loss(ending)
    if lost:
        return Verdict.NODE_FAIL, f"{how}: {lost}"
    unbegun = _find_no_start(ending)
    if unbegun:
        return Verdict.LOST, f"{how} before any rank began: {unbegun}"
    killed = _find_killed(ending) if cause is None or cause.secondary else None
    tasks = find_task_ends(ending.launcher_log)
    if killed is not None:
        task = next((task for task in tasks if task.is_kill), None)
        return _judge_kill(ending, name_task(task) if task is not None else _name_exit(ending, killed))
    named = next(iter(tasks), None)
    if named is not None:
        how = name_task(named)
        if named.is_kill and (cause is None or cause.secondary):
            return _judge_kill(ending, how)
    if cause is not None:
        return Verdict.FAILED, _name_error(ending, cause)
    rank = named.rank if named is not None else failed.index
    tail = ending.log_tails.get(rank) or next(iter(ending.log_tails.values()), "")
    if any(words in tail.lower() for words in _OOM_LAST_WORDS):
        return Verdict.OOM, f"{how}: {tail}"
    if any(words in tail.lower() for words in _STORAGE_LAST_WORDS):
        return Verdict.CANCELLED, f"{how}: {tail}; {_MAKE_ROOM}"
    return Verdict.FAILED, f"{how}{f': {tail}' if tail else ''}"


def _find_node_loss(ending: Ending) -> str:
    lines = (line.strip() for line in ending.launcher_log.splitlines())
    return next((line for line in lines if any(text in line.lower() for text in _NODE_TEXTS)), "")


def _find_full(ending: Ending) -> str:
    """Which rank ended since nothing could be written, not even why; empty when none did."""
    task = next((task for task in find_task_ends(ending.launcher_log) if task.code == STORAGE_CODE), None)
    own = next((exit_ for exit_ in ending.exits if exit_.code == STORAGE_CODE and not exit_.stopped), None)
    return name_task(task) if task is not None else _name_exit(ending, own) if own is not None else ""


def _find_no_start(ending: Ending) -> str:
    """Why srun could not start any rank, in its own words; empty when a rank has spoken."""
    if ending.log_tails:
        return ""
    lines = (line.strip() for line in ending.launcher_log.splitlines())
    return next((line for line in lines if any(text in line.lower() for text in _NO_START_TEXTS)), "")


def _find_killed(ending: Ending) -> Exit | None:
    unsought = (exit_ for exit_ in ending.exits if not exit_.stopped)
    return next((exit_ for exit_ in unsought if _is_kill(ending, exit_)), None)


def _is_kill(ending: Ending, exit_: Exit) -> bool:
    # A rank that has started answers SIGTERM itself. A launcher sends it to ranks when another one has failed.
    told = _signal_of(exit_.code)
    return told == signal.SIGKILL or (told == signal.SIGTERM and not ending.launcher)


def _judge_kill(ending: Ending, how: str) -> tuple[Verdict, str]:
    # The kernel's count is of the whole host: it explains a kill of ours, and nothing else.
    if ending.oom_kills:
        return Verdict.OOM, f"{how}: killed for memory"
    return Verdict.LOST, f"{how}, not by us and not for memory"


def _name_error(ending: Ending, error: RankError) -> str:
    return f"{_name_rank(ending, error.rank)}: {error.text}"


def _name_rank(ending: Ending, rank: int) -> str:
    """The rank, and its host where the ranks had several."""
    several = len(set(ending.rank_hosts)) > 1 and rank < len(ending.rank_hosts)
    return f"rank {rank} on {ending.rank_hosts[rank]}" if several else f"rank {rank}"


def _name_exit(ending: Ending, exit_: Exit) -> str:
    who = ending.launcher or _name_rank(ending, exit_.index)
    if ending.launcher and exit_.code < 0:  # not its ranks' signal, which it hands on as 128 and more
        who = f"{ending.launcher} itself{f', on {ending.host},' if ending.host else ''}"
    signum = _signal_of(exit_.code)
    if signum is not None:
        return f"{who} ended by {signum.name}"
    return f"{who} ended with code {exit_.code}"


def _signal_of(code: int) -> signal.Signals | None:
    number = -code if code < 0 else code - _SHELL_SIGNAL_BASE
    try:
        return signal.Signals(number)
    except ValueError:
        return None
