"""The public failure cases that befall a run under way, by signals, numbers or other writers, on any side."""

import signal
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.faults_matrix.bed import Bed, wait_until
from benchmarks.faults_matrix.cases import Case, find_intact
from benchmarks.faults_matrix.journal import Order, read_journal
from benchmarks.faults_matrix.outcome import (
    count_repeated,
    describe_asked,
    describe_exactness,
    describe_resume,
    name_reason,
)
from benchmarks.faults_matrix.sides import DCP, JOB, LIGHTNING, OURS, SUBMITIT, Side
from benchmarks.faults_stale_writer import hold_lease
from windtunnel.ledger.layout import TrialFolder

WAIT_S = 60.0
"""For a word of a run that gets no further."""
_NO_LOOP = "has no training loop"
_NO_SIGNALS = "handles no signals"
_NO_LOOPS = {SUBMITIT.name: _NO_LOOP, DCP.name: _NO_LOOP}
_ARRAY = {**JOB, "SLURM_JOB_ID": "43", "SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": "3"}


def turn_nan(bed: Bed, side: Side) -> str:
    """One loss, once."""
    order = bed.make_order(side)
    attempt = bed.run(side, order, faults="13:NAN")
    if attempt.done is None:
        return f"stops ({name_reason(attempt)})"
    if not attempt.done.finite:
        return f"silent: {attempt.done.step - 12} more steps, weights are NaN at the end"
    same = describe_exactness(attempt, bed.find_whole(side, order))
    return "rolled back, ends as the run without" if same == "resumed exactly" else f"goes on, {same}"


def stop_within_epoch(bed: Bed, side: Side) -> str:
    """Killed in the second epoch, some steps after a checkpoint."""
    order = bed.make_order(side, steps=3 * side.epoch_steps)
    bed.run(side, order, faults=f"{side.epoch_steps + 6}:KILL")
    after = bed.run(side, replace(order, attempt=2))
    told = describe_exactness(after, bed.find_whole(side, order))
    events = read_journal(Path(order.folder))
    if side == OURS or after.resumed is None or after.done is None:
        return told
    twice, never = count_repeated(events, after, epoch_steps=side.epoch_steps)
    return f"{told}; {twice} samples of the epoch twice, {never} never"


def stop_after_epoch(bed: Bed, side: Side) -> str:
    """A model with dropout, killed just after an epoch's end, where its checkpoint is."""
    order = bed.make_order(side, steps=2 * side.epoch_steps, save_every=side.epoch_steps, dropout=0.2)
    bed.run(side, order, faults=f"{side.epoch_steps + 3}:KILL")
    return describe_exactness(bed.run(side, replace(order, attempt=2)), bed.find_whole(side, order))


def signal_one_rank(bed: Bed, side: Side) -> str:
    """SIGTERM to one of two ranks."""
    order = bed.make_order(side, ranks=2, steps=400)
    before = bed.start(side, order, faults="13:TERM@1").wait(WAIT_S)
    if before.done is not None:
        return "goes on as if nothing had come"
    how = f"no end within {WAIT_S:.0f} s" if before.hung else "all ranks end"
    after = bed.run(side, replace(order, attempt=2))
    return f"{how}; {describe_resume(before, after, intact=find_intact(bed, side, order, after))}"


def stop_without_warning(bed: Bed, side: Side) -> str:
    """SIGTERM in a job of one task, and SIGKILL five steps later: the time limit where no warning was asked for."""
    order = bed.make_order(side)
    before = bed.run(side, order, faults="13:TERM,18:KILL", env=JOB if side == LIGHTNING else {})
    after = bed.run(side, replace(order, attempt=2), env=JOB if side == LIGHTNING else {})
    return describe_resume(before, after, intact=find_intact(bed, side, order, after))


def stand_still(bed: Bed, side: Side) -> str:
    """One of two ranks stops for good, by SIGSTOP."""
    order = bed.make_order(side, ranks=2, steps=2000, save_every=10)
    running, started = bed.start(side, order, faults="60:STOP@1"), time.monotonic()
    wait_until(running.children[1].is_stopped)
    ended = wait_until(lambda: running.children[0].poll() is not None, WAIT_S)
    took_s = time.monotonic() - started
    running.wait(0)
    if not ended:
        return f"no word within {WAIT_S:.0f} s"
    stacks = list(Path(order.folder).rglob("stacks-rank-*"))
    return f"ends within {took_s:.0f} s, {'stacks are kept' if stacks else 'without stacks'}"


def write_twice(bed: Bed, side: Side) -> str:
    """A run that stands still is started again elsewhere, gets further, and only then goes on itself."""
    first = lease_order(side, bed.make_order(side))
    saves = ",{}:USR2" if side == SUBMITIT else ""
    stale = bed.start(side, first, faults="13:STOP" + saves.format(16))
    assert wait_until(stale.children[0].is_stopped), "it did not stop"
    bed.run(side, lease_order(side, replace(first, attempt=2)), faults=saves.format(13).strip(","))
    known = read_stamps(first.checkpoints)
    stale.children[0].send(signal.SIGCONT)
    ended = stale.wait()
    found = read_stamps(first.checkpoints)
    changed = [name for name in {**known, **found} if known.get(name) != found.get(name)]
    if not changed:
        return f"the stale writer changes nothing, and ends ({name_reason(ended)})"
    kept = sum(name in found and name in known for name in changed)
    gone = sum(name not in found for name in changed)
    return f"the stale writer replaces {kept}, removes {gone}, adds {len(changed) - kept - gone} files"


def lease_order(side: Side, order: Order) -> Order:
    """Under a new lease, as our supervisors start it; the others have none."""
    return replace(order, generation=hold_lease(TrialFolder(Path(order.folder)).lease)) if side == OURS else order


def read_stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def requeue_task(bed: Bed, side: Side) -> str:
    """The warning signal in the third task of an array."""
    bed.asked.unlink(missing_ok=True)
    order = bed.make_order(side)
    bed.run(side, order, faults="11:USR2" if side == SUBMITIT else "11:USR1,15:KILL", env=_ARRAY)
    return describe_asked(bed.asked)


def preempt_short_job(bed: Bed, side: Side) -> str:
    """A job of five minutes is preempted after seconds, again and again."""
    order = bed.make_order(side, timeout_min=5)
    attempt = bed.run(side, order, faults="3:USR2")
    cause = "a time-out" if "has timed out" in attempt.log else "a preemption"
    for number in range(2, 7):
        if "not requeued" in attempt.log:
            return f"taken for {cause}; given up at preemption {number - 1}"
        attempt = bed.run(side, replace(order, attempt=number), faults="3:USR2")
    return f"taken for {cause}; goes on after {number - 1} preemptions"


CASES = (
    Case("a loss is NaN", turn_nan, _NO_LOOPS),
    Case("stopped within an epoch", stop_within_epoch, _NO_LOOPS),
    Case("stopped after an epoch, with dropout", stop_after_epoch, _NO_LOOPS),
    Case("SIGTERM to one of two ranks", signal_one_rank, {SUBMITIT.name: _NO_LOOP, DCP.name: _NO_SIGNALS}),
    Case(
        "the time limit, without a warning",
        stop_without_warning,
        {SUBMITIT.name: "always asks for the warning", DCP.name: _NO_SIGNALS},
    ),
    Case("a rank stands still", stand_still, _NO_LOOPS),
    Case("a second writer lives", write_twice),
    Case(
        "an array's task is requeued",
        requeue_task,
        {DCP.name: _NO_SIGNALS, OURS.name: "its launcher submits the next job"},
    ),
    Case(
        "a short job is preempted",
        preempt_short_job,
        {LIGHTNING.name: "tells no causes apart", DCP.name: _NO_SIGNALS, OURS.name: "asks Slurm: see part causes"},
    ),
)
