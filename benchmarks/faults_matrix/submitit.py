"""`python -m benchmarks.faults_matrix.submitit ORDER`: a job of plain submitit, as Slurm starts it there.

The first attempt also submits: it pickles the callable where submitit's executor does. Later ones find what is there.
"""

import os
from pathlib import Path

import torch
from submitit.core.submission import process_job
from submitit.core.utils import DelayedSubmission

from benchmarks.faults_matrix.journal import read_order
from benchmarks.faults_matrix.loop import Training

MAX_TIMEOUTS = 3
"""submitit's own default."""


def main() -> None:
    torch.set_num_threads(1)
    order = read_order()
    folder, attempt_file = order.checkpoints, Path(order.folder) / "attempt"
    attempt_file.write_text(str(order.attempt))
    if order.attempt == 1:
        folder.mkdir(exist_ok=True)
        submission = DelayedSubmission(Training(order), order, str(attempt_file))
        submission.set_timeout(order.timeout_min, MAX_TIMEOUTS)
        submission.dump(folder / f"{name_job()}_submitted.pkl")
    process_job(folder)


def name_job() -> str:
    """As submitit names the job that this process is in."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]


if __name__ == "__main__":
    main()
