"""Shapes, packs and limits on a real Slurm with accounting."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from virtual_cluster import Testbed, wait_for

from fake_driver import write_study
from fake_trials import make_trial
from windtunnel.artifacts import read_artifact
from windtunnel.ledger.layout import read_attempt_numbers, trial_folder
from windtunnel.ledger.log import read_events
from windtunnel.process import Finished
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import Sweep, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

DRIVER = (sys.executable, str(Path(__file__).parents[2] / "fake_driver.py"))
CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
QOS, ODD = "tight", "odd:p+1"


@pytest.fixture
def qos(testbed: Testbed) -> Iterator[str]:
    """A QOS of which a user has at most two jobs in the queue, for an hour each."""
    user = testbed.spec.user
    limits = ("MaxSubmitJobsPerUser=2", "MaxWall=01:00:00", "MaxTRESPerJob=node=2")
    testbed.run("sacctmgr", "--immediate", "add", "qos", QOS, *limits)
    testbed.run("sacctmgr", "--immediate", "modify", "user", user, "set", f"qos+={QOS}")
    yield QOS
    testbed.run("sacctmgr", "--immediate", "modify", "user", user, "set", f"qos-={QOS}")
    testbed.run("sacctmgr", "--immediate", "delete", "qos", QOS)


@pytest.fixture
def odd_partition(testbed: Testbed) -> Iterator[str]:
    testbed.run("scontrol", "create", f"PartitionName={ODD}", "Nodes=n0,n1", "MaxTime=30", "State=UP")
    yield ODD
    testbed.run("scontrol", "delete", f"PartitionName={ODD}")


def test_what_no_job_could_run_is_refused_before_anything_is_submitted(
    testbed: Testbed, tmp_path: Path, qos: str
) -> None:
    trials = [
        on_slurm("a"),
        on_slurm("b", ranks=64, nodes=64),
        in_shape("c", partition="nowhere"),
        in_shape("d", qos=qos, time_min=90),
        in_shape("e", qos=qos, nodes=3),
        in_shape("f", account="nobody"),
        in_shape("g", qos="none"),
    ]
    ended = sweep(testbed, tmp_path, trials)
    assert ended.code == 2
    told = ended.stderr.strip().splitlines()
    assert len(told) == 7
    for line, words in zip(
        told[1:],
        (
            "64 nodes with 1 CPUs each are needed",
            "partition 'nowhere' does not exist",
            "cluster.time=01:30:00 is past 01:00:00, the MaxWall of QOS 'tight'",
            "node=3 is past node=2, the most that QOS 'tight' gives a job",
            "has no account 'nobody' here",
            "may not use QOS 'none'",
        ),
        strict=True,
    ):
        assert words in line
    assert not (tmp_path / "trials").exists()


def test_what_only_slurm_knows_is_refused_in_its_words(testbed: Testbed, tmp_path: Path) -> None:
    ended = sweep(testbed, tmp_path, [on_slurm("a"), in_shape("b", constraint="nosuch")])
    assert ended.code == 2
    assert "Invalid feature specification" in ended.stderr


def test_trials_past_the_users_limit_follow_as_others_end(testbed: Testbed, tmp_path: Path, qos: str) -> None:
    trials = [in_shape(name, qos=qos) for name in "abc"]
    ended = sweep(testbed, tmp_path, trials)
    assert ended.code == 0, ended.stdout + ended.stderr
    assert "1 trials wait for room in the queue (submit limit of QOS 'tight' is 2)" in ended.stdout
    assert verdicts(tmp_path) == [Verdict.COMPLETED] * 3


def test_packed_trials_run_in_turn_and_a_requeued_job_goes_on_with_the_rest(testbed: Testbed, tmp_path: Path) -> None:
    trials = [on_slurm("a"), on_slurm("b", behaviour="fail"), on_slurm("c", steps=20, step_s=0.2), on_slurm("d")]
    write(tmp_path, trials, SweepSettings(marker_poll_s=0.2, poll_s=2.0, lost_after_s=20.0, trials_per_job=4))
    folders = [trial_folder(tmp_path, trial.id) for trial in trials]
    argv = enter_argv(testbed.spec, login_host(testbed.spec).name, [*DRIVER, str(tmp_path)])
    driver = subprocess.Popen(argv, env={**os.environ, **host_env(testbed.spec)}, start_new_session=True)
    wait_for((folders[2].path / "fake_step").exists, 180)
    job_ids = {read_events(folder.path)[1].details["job_id"] for folder in folders}
    assert len(job_ids) == 1
    assert read_events(folders[3].path)[-1].kind == "waiting"
    testbed.run("scontrol", "requeue", str(job_ids.pop()))
    assert driver.wait(240) == 0
    assert verdicts(tmp_path) == [Verdict.COMPLETED, Verdict.FAILED, Verdict.COMPLETED, Verdict.COMPLETED]
    assert [len(read_attempt_numbers(folder)) for folder in folders] == [1, 1, 2, 1]
    submissions = [[event.kind for event in read_events(folder.path)].count("submitted") for folder in folders]
    assert submissions == [1, 1, 1, 1]


def test_odd_names_reach_slurm_and_the_drivers_own_job_does_not_reach_trials(
    testbed: Testbed, tmp_path: Path, odd_partition: str
) -> None:
    comment = """it's a "b" #c \\d $HOME"""
    trial = in_shape("a", partition=odd_partition, flags=(("comment", comment), ("exclude", "n0"), ("nice", "5")))
    root = tmp_path / "my results, it's here"
    strange = {
        "SLURM_JOB_ID": "1",
        "SBATCH_PARTITION": "urgent",
        "SLURM_NTASKS": "7",
        "SALLOC_ACCOUNT": "nobody",
        "PMI_RANK": "3",
    }
    ended = sweep(testbed, root, [trial], env=strange)
    assert ended.code == 0, ended.stdout + ended.stderr
    folder = trial_folder(root, trial.id)
    job_id = str(read_events(folder.path)[1].details["job_id"])
    shown = testbed.run("scontrol", "show", "job", job_id).stdout
    assert f"Comment={comment}" in shown
    assert f"Partition={odd_partition}" in shown
    assert "host n1" in folder.rank_log(1, 0).read_text()


def on_slurm(name: str, **details: object) -> PlannedTrial:
    return make_trial(name, cluster=CLUSTER, **details)  # type: ignore[arg-type]


def in_shape(name: str, **changes: object) -> PlannedTrial:
    trial = on_slurm(name)
    return replace(trial, shape=replace(trial.shape, **changes))  # type: ignore[arg-type]


def write(root: Path, trials: list[PlannedTrial], settings: SweepSettings) -> None:
    write_study(root, trials, SweepStageSettings(study="made_up", cluster=CLUSTER, sweep=settings))


def sweep(
    testbed: Testbed, root: Path, trials: list[PlannedTrial], *, env: Mapping[str, str] | None = None
) -> Finished:
    write(root, trials, SweepSettings(marker_poll_s=0.2, poll_s=2.0, lost_after_s=20.0))
    return testbed.run(*DRIVER, str(root), timeout_s=300, check=False, env=env)


def verdicts(root: Path) -> list[Verdict]:
    return [entry.verdict for entry in read_artifact(root / "study" / "sweep.json", Sweep).entries]
