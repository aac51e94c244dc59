"""`python -m benchmarks.faults_crash_saver`: for each order on stdin a child that saves; prints how it ended."""

import ctypes
import json
import os
import sys
from pathlib import Path

import torch

from benchmarks.faults_crash import NEW, Order
from benchmarks.faults_state import make_manifest, make_state, open_saver
from windtunnel.checkpoints.publish import remove_leftovers


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(save(Order(**json.loads(line))))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def save(order: Order) -> int:
    """What an attempt does from its start to its first checkpoint; counted from the first look at the folder."""
    torch.set_num_threads(1)
    folder, state = Path(order.folder), make_state(NEW)
    log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ctypes.CDLL(None).crash_points_arm(os.fsencode(folder), log, ctypes.c_long(order.point), order.moment)
    remove_leftovers(folder)
    saver = open_saver(folder, asynchronous=order.asynchronous)
    saver.save(state, make_manifest(NEW))
    saver.wait()
    return 0


if __name__ == "__main__":
    serve()
