"""What a Slurm job of ours runs: the call that submitit pickled for it, as submitit's own runner would.

That one imports numpy and asyncio first, half a second of processor time before anything happens. Here nothing is
imported that the call itself does not need; the names and contents of files are submitit's.
"""

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windtunnel.slurm.job import read_job_id

_PICKLE_TIMEOUT_S = 60.0
_POLL_S = 0.1


class Call:
    """Of submitit's DelayedSubmission what its run needs."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_call = (module, name) == ("submitit.core.utils", "DelayedSubmission")
        return Call if is_call else super().find_class(module, name)


def main(argv: Sequence[str]) -> int:
    """`python -m windtunnel.launch.call FOLDER`, inside a job."""
    os.environ["SUBMITIT_FOLDER"] = argv[0]  # where `submitit.JobEnvironment` of a user's function looks
    job_id = read_job_id(os.environ)
    assert job_id, "this runs inside a job"
    return run_call(Path(argv[0]), job_id)


def run_call(folder: Path, job_id: str) -> int:
    """Run the job's call, write what it returned or raised, and return the exit code."""
    call = load_call(folder / f"{job_id}_submitted.pkl")
    # Sent a while before the limit and by scancel: a function may still finish. An `exec` takes the default back.
    signal.signal(signal.SIGTERM, _note_signal)
    try:
        outcome = "success", call.function(*call.args, **call.kwargs)
    except Exception:
        outcome = "error", traceback.format_exc()
        print(outcome[1], file=sys.stderr, flush=True)
    write_outcome(folder / f"{job_id}_0_result.pkl", outcome)
    return int(outcome[0] == "error")


def load_call(path: Path) -> Call:
    """The pickled call, which may appear only after the job began; raises FileNotFoundError if it never does."""
    deadline = time.monotonic() + _PICKLE_TIMEOUT_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    with path.open("rb") as file:
        call = _Unpickler(file).load()
    assert isinstance(call, Call), f"{path} holds a {type(call).__name__}"
    return call


def write_outcome(path: Path, outcome: tuple[str, Any]) -> None:
    """Publish `success` and a value, or `error` and a traceback; a value that cannot be pickled is an error."""
    # A value's class may be the user's script's own.
    import cloudpickle  # type: ignore[import-untyped]  # it ships no types

    try:
        data = cloudpickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception:
        data = pickle.dumps(("error", traceback.format_exc()))
    temporary = path.with_name(f"{path.name}.save_tmp")
    temporary.write_bytes(data)
    temporary.rename(path)


def exec_command(argv: Sequence[str]) -> None:
    """Become `argv`: so that signals for the job reach the supervisor itself."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], list(argv))


def _note_signal(signum: int, _frame: object) -> None:
    print(f"{signal.Signals(signum).name} came: the call goes on until it ends or is killed", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
