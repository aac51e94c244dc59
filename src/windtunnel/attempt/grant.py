"""What this process was granted: the hosts to run ranks on, and the job that they belong to."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.errors import ClusterError
from windtunnel.hostlist import expand_hostlist
from windtunnel.slurm.job import read_job_id


@dataclass(frozen=True)
class Grant:
    """Hosts in the scheduler's own order; `job_id` is as squeue writes it, or `host:pid` without Slurm."""

    hosts: tuple[str, ...]
    job_id: str
    slurm: bool


def find_grant(kind: str, environ: Mapping[str, str]) -> Grant:
    """The grant of a trial whose cluster is of `kind`.

    Raises ClusterError when a trial for Slurm is started outside a job.
    """
    if kind == "local":
        host, pid = socket.gethostname(), environ.get("SUBMITIT_LOCAL_JOB_ID")
        return Grant((host,), f"{host}:{pid}" if pid else "", slurm=False)
    if "SLURM_JOB_NODELIST" not in environ:
        raise ClusterError(
            "this trial runs on Slurm (cluster.kind=slurm) but SLURM_JOB_NODELIST is not set: "
            "start it inside a job, or let `windtunnel sweep` submit it"
        )
    return Grant(tuple(expand_hostlist(environ["SLURM_JOB_NODELIST"])), read_job_id(environ), slurm=True)
