import pytest

from windtunnel.errors import ClusterError
from windtunnel.slurm.job import read_job_hosts

JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-1]", "SLURM_JOB_PARTITION": "debug"}


def test_a_jobs_hosts_are_those_granted():
    assert read_job_hosts("debug", JOB) == ("n0", "n1")


def test_a_partition_is_not_measured_outside_a_job():
    with pytest.raises(ClusterError, match=r"inside a job.*srun --partition=debug"):
        read_job_hosts("debug", {"SLURM_JOB_NODELIST": "n0"})


def test_a_job_of_another_partition_is_refused():
    with pytest.raises(ClusterError, match="in partition 'debug' but the settings say 'gpu'"):
        read_job_hosts("gpu", JOB)
