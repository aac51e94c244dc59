"""One rank of a fake trial: it obeys `settings.fake.behaviour`, keeps a checkpoint, and logs as training does."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from windtunnel.artifacts import read_artifact, to_plain, write_artifact, write_atomic
from windtunnel.records.trial import StepRecord, TrialConfig

sys.path.insert(0, str(Path(__file__).parent))
from fake_trials import make_outcome


def main() -> None:
    trial_dir, attempt = Path(sys.argv[2]), int(sys.argv[4])
    rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
    config = read_artifact(trial_dir / "config.yaml", TrialConfig)
    behaviour = config.trial.settings["fake"]["behaviour"]
    print(
        f"rank {rank} pid {os.getpid()} host {os.uname().nodename} threads {os.environ['OMP_NUM_THREADS']}",
        flush=True,
    )
    fail_early(behaviour, rank=rank, attempt=attempt, attempt_dir=trial_dir / "attempts" / str(attempt))
    saved = trial_dir / "fake_step"
    first = int(saved.read_text()) if saved.exists() else 0
    steps = config.trial.settings["training"]["steps"]
    for step in range(first + 1, steps + 1):
        time.sleep(config.trial.settings["fake"]["step_s"])
        if rank == 0:
            save_step(trial_dir, saved, StepRecord(step, attempt, 0.7, 1e-3, 1234.0, 0.01, 0.1 * step))
            if behaviour == "keep checkpoints":
                (trial_dir / "checkpoints" / f"step-{step:08d}").mkdir(parents=True, exist_ok=True)
    if rank == 0 and behaviour != "say nothing":
        outcome = make_outcome(config.trial.id, steps=steps, attempt=attempt, resumed=first or None)
        write_artifact(trial_dir / "DONE.json", outcome)


def fail_early(behaviour: str, *, rank: int, attempt: int, attempt_dir: Path) -> None:
    if behaviour == "fail" and rank == 0:
        error = {"rank": 0, "type": "ValueError", "message": "no such loss", "last_line": "ValueError: no such loss"}
        write_atomic(attempt_dir / "error-rank-0.json", json.dumps(error).encode())
        sys.exit(1)
    if behaviour == "out of memory":
        error = {"rank": rank, "type": "OutOfMemoryError", "message": "tried to allocate 9 GiB"}
        write_atomic(attempt_dir / f"error-rank-{rank}.json", json.dumps(error).encode())
        sys.exit(1)
    if behaviour == "last rank fails" and rank == int(os.environ["WORLD_SIZE"]) - 1:
        sys.exit("the disk is gone")
    if behaviour == "killed always" or (behaviour == "killed at first" and attempt == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "deaf":
        for signum in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(signum, signal.SIG_IGN)
    if behaviour in ("hang", "deaf", "last rank fails"):
        time.sleep(600)


def save_step(trial_dir: Path, saved: Path, record: StepRecord) -> None:
    with (trial_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(to_plain(record)) + "\n")
    write_atomic(saved, str(record.step).encode())


if __name__ == "__main__":
    main()
