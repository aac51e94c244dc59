"""`python -m benchmarks.faults_matrix.serve MODULE`: runs attempts of a side in children that it forks.

Its import takes longer than an attempt. Each line of stdin starts one, answered by its pid, or asks how one ended.
"""

import importlib
import json
import os
import sys
import traceback
from types import ModuleType
from typing import Any

PRELOADED = ("windtunnel.training.run", "torch._dynamo")


def serve(module: ModuleType) -> None:
    """An exit code is known for good once it was asked for and there was one."""
    codes: dict[int, int] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if "order" in command:
            print(start(module, command), flush=True)
            continue
        pid = command["poll"]
        if pid not in codes:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
        print(json.dumps(codes.get(pid)), flush=True)


def start(module: ModuleType, command: dict[str, Any]) -> int:
    """The child's pid."""
    child = os.fork()
    if child == 0:
        os._exit(run(module, command))
    return child


def run(module: ModuleType, command: dict[str, Any]) -> int:
    """The program's `main`, as a process of its own would run it."""
    log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(command["env"])
    sys.argv[1:] = [command["order"]]
    code = 0
    try:
        module.main()
    except SystemExit as error:
        code = error.code & 255 if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # what ends a program, printed as Python prints it
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    serve(importlib.import_module(sys.argv[1]))
