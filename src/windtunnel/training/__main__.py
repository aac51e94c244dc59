"""`python -m windtunnel.training --trial-dir DIR --attempt N`: one rank of a trial, as its supervisor starts it."""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.comm.ranks import read_rank_env
from windtunnel.errors import WindtunnelError
from windtunnel.kernels.backend import VARIABLE
from windtunnel.modes import umask_of_store
from windtunnel.records.trial import STOPPED_CODE, STORAGE_CODE, TrialConfig
from windtunnel.storage import find_storage_fault


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rank; its exit code is 0, 75 when told to stop, 74 on a full disk, 2 for the user's mistake, else 1."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.training", description="One rank of a trial.")
    parser.add_argument("--trial-dir", type=Path, required=True, help="the trial's folder, with its config.yaml")
    parser.add_argument("--attempt", type=int, required=True, help="number of this attempt; its folder exists")
    parser.add_argument("--generation", type=int, default=0, help="number of the trial's lease that it runs under")
    arguments = parser.parse_args(argv)
    trial_dir = arguments.trial_dir.absolute()
    try:
        with umask_of_store([trial_dir]):  # an mpiexec of another host's does not hand ours on
            return start_rank(trial_dir, arguments.attempt, generation=arguments.generation)
    except WindtunnelError as error:
        print(f"windtunnel: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def start_rank(trial_dir: Path, attempt: int, *, generation: int = 0) -> int:
    """Set what must be set before torch loads, then run; what ends the rank early is left for the supervisor."""
    started = time.perf_counter()
    env = read_rank_env()
    config = read_artifact(trial_dir / "config.yaml", TrialConfig)
    set_environment(config)
    # torch takes seconds to import and reads the environment as it does.
    from torch.distributed.checkpoint.api import CheckpointException

    from windtunnel.training.failure import write_failure
    from windtunnel.training.run import run_rank
    from windtunnel.training.stop import catch_stop

    try:
        with catch_stop() as wish:
            done = run_rank(
                trial_dir, attempt=attempt, generation=generation, config=config, env=env, started=started, wish=wish
            )
    except (Exception, CheckpointException) as error:
        # The one broad handler of a rank: whatever ends it is written down, and raised again.
        is_full = find_storage_fault(error) is not None
        try:
            write_failure(trial_dir / "attempts" / str(attempt), env.rank, error)
        except OSError as unwritten:
            # Whatever it was, it comes again when there is room to tell of it.
            is_full = is_full or find_storage_fault(unwritten) is not None
        if not is_full:
            raise
        traceback.print_exc()
        return STORAGE_CODE
    return 0 if done else STOPPED_CODE


def set_environment(config: TrialConfig) -> None:
    """Threads of the arithmetic libraries, deterministic matrix products on CUDA, and the user's import path."""
    threads = str(config.trial.settings["training"]["threads_per_rank"])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads
    os.environ[VARIABLE] = config.trial.settings["kernels"]["backend"]
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if config.import_root:
        sys.path.insert(0, config.import_root)


if __name__ == "__main__":
    # One that comes while torch loads waits until it can be answered. SIGUSR1, by which a supervisor ends all ranks,
    # need not: before the first step there is nothing to save.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    sys.exit(main())
