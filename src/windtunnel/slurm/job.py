"""The Slurm job that this process is in, from its environment."""

import os
import signal
from collections.abc import Mapping

from windtunnel.errors import ClusterError, CommandError
from windtunnel.hostlist import expand_hostlist
from windtunnel.process import run_command

_TIMEOUT_S = 5.0


def read_job_hosts(partition: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Hosts of this job; raises ClusterError outside a job, or in a job of another partition than asked."""
    env = os.environ if env is None else env
    granted, found = env.get("SLURM_JOB_NODELIST"), env.get("SLURM_JOB_PARTITION")
    if not env.get("SLURM_JOB_ID") or not granted:
        raise ClusterError(
            f"partition {partition!r} is measured inside a job there, and this is none: run the stage through "
            f"Snakemake's Slurm profile, or by srun --partition={partition}"
        )
    if found not in (None, partition):
        raise ClusterError(
            f"this job is in partition {found!r} but the settings say {partition!r}: submit it with "
            f"--partition={partition}, or set cluster.partition={found}"
        )
    return tuple(expand_hostlist(granted))


def read_job_id(env: Mapping[str, str]) -> str:
    """This job's id as squeue writes it: `12`, or `12_3` for task 3 of array 12; empty outside a job."""
    array, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else env.get("SLURM_JOB_ID", "")


def signal_own_steps(env: Mapping[str, str], signum: int) -> bool:
    """Signal the tasks of this job's steps, and not its batch script; False when Slurm refuses or does not answer."""
    job_id = env.get("SLURM_JOB_ID", "")
    if not job_id:
        return False
    argv = ["scancel", f"--signal={signal.Signals(signum).name.removeprefix('SIG')}", job_id]
    try:
        return run_command(argv, timeout_s=_TIMEOUT_S, check=False).code == 0
    except CommandError:
        return False
