from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_trial
from windtunnel.attempt.grant import Grant, find_grant
from windtunnel.attempt.plan import plan_attempt, render_hostfile
from windtunnel.attempt.program import AttemptFiles
from windtunnel.errors import ClusterError
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.plan import Identity
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.cluster import ClusterSettings

FOLDER = TrialFolder(Path("/store/trials/abc"))
RANK = ("python", "-m", "windtunnel.training")
SLURM = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
IDENTITY = Identity("d", "s", "2.13.0")


def make_config(cluster: ClusterSettings, *, ranks: int, nodes: int = 1) -> TrialConfig:
    trial = make_trial(ranks=ranks, nodes=nodes, cluster=cluster)
    return TrialConfig(trial, IDENTITY, "/features/MANIFEST.json", "", "/home/me/models")


def test_local_ranks_are_processes_with_torchruns_names() -> None:
    config = make_config(ClusterSettings(kind="local", partition="local"), ranks=2)
    plan = plan_attempt(
        config, Grant(("here",), "", slurm=False), files=AttemptFiles(FOLDER, 3, 8), rank_command=RANK, path="/site"
    )
    assert [process.log.name for process in plan.processes] == ["rank-0.log", "rank-1.log"]
    assert plan.processes[1].argv == (
        *RANK,
        "--trial-dir",
        "/store/trials/abc",
        "--attempt",
        "3",
        "--generation",
        "8",
    )
    assert plan.processes[1].env == {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": "/home/me/models:/site",
    }
    assert (plan.hosts, plan.time_limit_s) == (("here",), 300.0)


def test_slurm_ranks_are_one_srun_in_our_order_of_hosts() -> None:
    plan = plan_attempt(
        make_config(SLURM, ranks=4, nodes=2),
        Grant(("n4", "n1"), "12_3", slurm=True),
        files=AttemptFiles(FOLDER, 1),
        rank_command=RANK,
        path="",
    )
    assert render_hostfile(plan) == "n4\nn4\nn1\nn1\n"
    (srun,) = plan.processes
    assert srun.argv == (
        "srun",
        "--nodes=2",
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--cpus-per-task=1",
        "--distribution=arbitrary",
        "--cpu-bind=none",
        "--mpi=none",
        "--kill-on-bad-exit=0",
        "--wait=60",
        "--label",
        "--",
        *RANK,
        "--trial-dir",
        "/store/trials/abc",
        "--attempt",
        "1",
        "--generation",
        "0",
    )
    assert srun.env["SLURM_HOSTFILE"] == "/store/trials/abc/attempts/1/hosts"
    assert (srun.env["GLOO_SOCKET_IFNAME"], srun.env["NCCL_SOCKET_IFNAME"]) == ("eth0", "eth0")


def test_a_grant_too_small_for_the_trial_is_refused() -> None:
    with pytest.raises(ClusterError, match="needs 2 nodes but job 12 has 1"):
        plan_attempt(
            make_config(SLURM, ranks=2, nodes=2),
            Grant(("n0",), "12", slurm=True),
            files=AttemptFiles(FOLDER, 1),
            rank_command=RANK,
            path="",
        )


def test_a_grant_is_read_from_the_job_it_is_in() -> None:
    job = {"SLURM_JOB_NODELIST": "n[0-1,4]", "SLURM_JOB_ID": "15"}
    assert find_grant("slurm", job) == Grant(("n0", "n1", "n4"), "15", slurm=True)
    task = {**job, "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}
    assert find_grant("slurm", task).job_id == "12_3"


def test_a_local_trial_inside_a_job_stays_on_its_host() -> None:
    grant = find_grant("local", {"SLURM_JOB_NODELIST": "n[0-1]", "SUBMITIT_LOCAL_JOB_ID": "77"})
    assert (len(grant.hosts), grant.slurm) == (1, False)
    assert grant.job_id == f"{grant.hosts[0]}:77"


def test_no_user_folder_and_no_path_set_no_path() -> None:
    config = replace(make_config(ClusterSettings(kind="local", partition="local"), ranks=1), import_root="")
    plan = plan_attempt(
        config, Grant(("here",), "", slurm=False), files=AttemptFiles(FOLDER, 1), rank_command=RANK, path=""
    )
    assert "PYTHONPATH" not in plan.processes[0].env
