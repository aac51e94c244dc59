"""`python -m benchmarks.faults_stale_writer`: for each order on stdin a writer under a lease, then stopped."""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

from benchmarks.faults_stale import FAILED, FENCED, LAST_STEP, MIB, ZOMBIE_STEPS, Order
from benchmarks.faults_state import make_manifest, make_state
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.comm.single import SingleComm
from windtunnel.errors import FencedError
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.lease import take_lease


def serve() -> None:
    """Answers `stopped`, and after a further line the exit code; or the exit code at once, of one that ended."""
    for line in sys.stdin:
        order = Order(**json.loads(line))
        generation = hold_lease(TrialFolder(Path(order.trial)).lease)
        writer = start_writer(order, generation)
        _, status = os.waitpid(writer, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print("stopped", flush=True)
            sys.stdin.readline()
            os.kill(writer, signal.SIGCONT)
            _, status = os.waitpid(writer, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def hold_lease(lease: Path) -> int:
    """Let a process take the lease, and end without a word, as a supervisor whose node is lost; its generation."""
    holder = os.fork()
    if holder == 0:
        os._exit(take_lease(lease, "trial").generation)
    return os.waitstatus_to_exitcode(os.waitpid(holder, 0)[1])


def start_writer(order: Order, generation: int) -> int:
    """Its pid; it is stopped after its delay, or stops at its operation by itself."""
    begun, begin = os.pipe()
    writer = os.fork()
    if writer == 0:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a saver says is no answer
        os._exit(write(order, generation, begin))
    os.close(begin)
    os.read(begun, 1)
    os.close(begun)
    if order.delay_s >= 0:
        time.sleep(order.delay_s)
        os.kill(writer, signal.SIGSTOP)
    return writer


def write(order: Order, generation: int, begin: int) -> int:
    """Save step after step, as an attempt does that nobody tells of its successor."""
    torch.set_num_threads(1)
    folder = TrialFolder(Path(order.trial))
    fence, steps = Fence(folder.lease, generation), (*ZOMBIE_STEPS, LAST_STEP)
    states = {step: make_state(step, mib=MIB) for step in steps}
    saver = Saver(
        folder.path / "checkpoints",
        comm=SingleComm(),
        fence=fence,
        retention=Retention(2),
        asynchronous=order.asynchronous,
    )
    arm(order)
    os.write(begin, b"b")
    try:
        for step in steps:
            saver.save(states[step], make_manifest(step))
        saver.wait()
    except FencedError:
        return FENCED
    except Exception as error:  # whatever it is, the run would have ended with it
        print(f"faults: a stale writer ended with {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def arm(order: Order) -> None:
    """Count operations from here on, and stop at the one that is meant."""
    library = ctypes.CDLL(None)
    ctypes.c_int.in_dll(library, "crash_points_signal").value = signal.SIGSTOP
    log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    library.crash_points_arm(os.fsencode(order.trial), log, ctypes.c_long(order.point), order.moment)


if __name__ == "__main__":
    serve()
