import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

from virtual_cluster import Testbed, wait_for

from fake_driver import write_study
from fake_trials import make_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder
from windtunnel.ledger.lease import read_live_holder
from windtunnel.ledger.log import read_events
from windtunnel.ledger.nodes import read_failures
from windtunnel.records.cluster import Node, Topology
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import AttemptEnd, Sweep, SweepEntry, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

DRIVER = (sys.executable, str(Path(__file__).parents[2] / "fake_driver.py"))
CANCEL = (sys.executable, str(Path(__file__).parents[2] / "fake_cancel.py"))
CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
SWEEP = SweepSettings(marker_poll_s=0.2, poll_s=2.0, lost_after_s=20.0, settle_s=3.0)
SETTINGS = SweepStageSettings(study="made_up", cluster=CLUSTER, sweep=SWEEP)


def test_each_shape_is_one_array_and_a_failure_loses_no_other(testbed: Testbed, tmp_path: Path) -> None:
    trials = [
        on_slurm("a"),
        on_slurm("b", behaviour="fail"),
        on_slurm("c", ranks=4, nodes=2),
        on_slurm("d", ranks=4, nodes=2, behaviour="out of memory"),
    ]
    entries = sweep_there(testbed, tmp_path, trials)
    assert [entry.verdict for entry in entries] == [
        Verdict.COMPLETED,
        Verdict.FAILED,
        Verdict.COMPLETED,
        Verdict.OOM,
    ]
    assert "rank 0: ValueError: no such loss" in entries[1].evidence
    jobs = [job_of(trial_folder(tmp_path, trial.id)).partition("_")[0] for trial in trials]
    assert jobs[0] == jobs[1] != jobs[2] == jobs[3]


def test_ranks_run_on_the_granted_hosts_in_the_order_of_leaves(testbed: Testbed, tmp_path: Path) -> None:
    nodes = [Node(f"n{i}", 4, 1000, 0, "idle", ("spine", f"leaf{i % 2}")) for i in range(8)]
    write_artifact(tmp_path / "topology.json", Topology("main", "slurm", tuple(nodes), None, ""))
    # A leaf has 4 nodes, so that 5 lie on both.
    trial = on_slurm("a", ranks=10, nodes=5)
    sweep_there(testbed, tmp_path, [trial])
    folder = trial_folder(tmp_path, trial.id)
    started = next(event for event in read_events(folder.path) if event.kind == "started")
    hosts = [folder.rank_log(1, rank).read_text().split("host ")[1].split()[0] for rank in range(10)]
    assert hosts == [host for host in started.details["hosts"] for _ in range(2)]
    leaves = [int(host[1:]) % 2 for host in started.details["hosts"]]
    assert sum(here != there for here, there in pairwise(leaves)) == 1
    assert sorted(started.details["granted"]) == sorted(started.details["hosts"])


def test_a_new_driver_finds_running_jobs_again(testbed: Testbed, tmp_path: Path) -> None:
    trials = [on_slurm("a", steps=40, step_s=0.2)]
    write_study(tmp_path, trials, SETTINGS)
    folder = trial_folder(tmp_path, trials[0].id)
    driver = start_driver(testbed, tmp_path)
    wait_for((folder.path / "fake_step").exists, 180)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    entries = sweep_there(testbed, tmp_path, trials)
    assert (entries[0].verdict, entries[0].attempts) == (Verdict.COMPLETED, 1)
    assert [event.kind for event in read_events(folder.path)].count("submitted") == 1


def test_a_cancelled_job_is_not_tried_again_until_the_next_command(testbed: Testbed, tmp_path: Path) -> None:
    trials = [on_slurm("a", steps=100, step_s=0.2)]
    write_study(tmp_path, trials, SETTINGS)
    folder = trial_folder(tmp_path, trials[0].id)
    driver = start_driver(testbed, tmp_path)
    wait_for((folder.path / "fake_step").exists, 180)
    testbed.run("scancel", job_of(folder))
    assert driver.wait(180) == 1
    partial = read_artifact(tmp_path / "study" / "sweep.partial.json", Sweep)
    assert [(entry.verdict, entry.attempts) for entry in partial.entries] == [(Verdict.CANCELLED, 1)]
    entries = sweep_there(testbed, tmp_path, trials)
    assert (entries[0].verdict, entries[0].attempts) == (Verdict.COMPLETED, 2)
    assert entries[0].outcome is not None
    assert (entries[0].outcome.resumed_from_step or 0) > 0


def test_a_requeued_job_goes_on_from_its_checkpoint(testbed: Testbed, tmp_path: Path) -> None:
    trials = [on_slurm("a", steps=60, step_s=0.2)]
    write_study(tmp_path, trials, SETTINGS)
    folder = trial_folder(tmp_path, trials[0].id)
    driver = start_driver(testbed, tmp_path)
    wait_for((folder.path / "fake_step").exists, 180)
    testbed.run("scontrol", "requeue", job_of(folder))
    assert driver.wait(240) == 0
    entry = read_artifact(tmp_path / "study" / "sweep.json", Sweep).entries[0]
    assert (entry.verdict, read_attempt_numbers(folder)) == (Verdict.COMPLETED, [1, 2])
    assert [event.kind for event in read_events(folder.path)].count("submitted") == 1
    assert read_artifact(folder.end(2), AttemptEnd).verdict == Verdict.COMPLETED


def test_a_supervisor_that_is_killed_is_succeeded_without_waiting_for_its_heartbeat(
    testbed: Testbed, tmp_path: Path
) -> None:
    trials = [on_slurm("a", steps=40, step_s=0.2)]
    write_study(tmp_path, trials, SETTINGS)
    folder = trial_folder(tmp_path, trials[0].id)
    driver = start_driver(testbed, tmp_path)
    wait_for((folder.path / "fake_step").exists, 180)
    holder = read_live_holder(folder.lease)
    assert holder is not None
    assert holder.job_id == job_of(folder)
    killed_at = time.time()
    os.kill(holder.pid, signal.SIGKILL)
    assert driver.wait(180) == 0
    events = read_events(folder.path)
    verdicts = [event.details["verdict"] for event in events if event.kind == "verdict"]
    assert (verdicts, read_attempt_numbers(folder)) == ([Verdict.LOST], [1, 2])
    assert next(event.at for event in events if event.kind == "started" and event.attempt == 2) - killed_at < 60
    assert [failure.trial_id for failure in read_failures(tmp_path)] == [trials[0].id]


def test_a_job_cancelled_by_our_own_command_is_explained_by_it(testbed: Testbed, tmp_path: Path) -> None:
    trials = [on_slurm("a", steps=100, step_s=0.2)]
    write_study(tmp_path, trials, SETTINGS)
    driver = start_driver(testbed, tmp_path)
    folder = trial_folder(tmp_path, trials[0].id)
    wait_for((folder.path / "fake_step").exists, 180)
    assert f"cancelled job {job_of(folder)}" in testbed.run(*CANCEL, str(tmp_path)).stdout
    assert driver.wait(180) == 1
    entry = read_artifact(tmp_path / "study" / "sweep.partial.json", Sweep).entries[0]
    assert (entry.verdict, entry.evidence.split(" by ")[0]) == (Verdict.CANCELLED, "cancelled")


def test_requests_that_slurm_cannot_serve_end_with_its_words_and_cost_no_other(
    testbed: Testbed, tmp_path: Path
) -> None:
    unknown = CLUSTER.model_copy(update={"partition": "nowhere"})
    trials = [
        on_slurm("a"),
        on_slurm("b", ranks=64, nodes=64),  # accepted by sbatch, to wait for ever
        make_trial("c", cluster=unknown),
    ]
    entries = sweep_there(testbed, tmp_path, trials, "--unchecked", code=1)
    assert [entry.verdict for entry in entries] == [Verdict.COMPLETED, Verdict.CANCELLED, Verdict.CANCELLED]
    assert "can never start" in entries[1].evidence
    assert "Invalid partition" in entries[2].evidence


def on_slurm(name: str, **details: object) -> PlannedTrial:
    return make_trial(name, cluster=CLUSTER, **details)  # type: ignore[arg-type]


def sweep_there(
    testbed: Testbed, root: Path, trials: list[PlannedTrial], *options: str, code: int = 0
) -> tuple[SweepEntry, ...]:
    write_study(root, trials, SETTINGS)
    ended = testbed.run(*DRIVER, str(root), *options, timeout_s=300, check=False)
    assert ended.code == code, ended.stdout + ended.stderr
    name = "sweep.partial.json" if code else "sweep.json"
    return read_artifact(root / "study" / name, Sweep).entries


def start_driver(testbed: Testbed, root: Path) -> "subprocess.Popen[bytes]":
    argv = enter_argv(testbed.spec, login_host(testbed.spec).name, [*DRIVER, str(root)])
    return subprocess.Popen(argv, env={**os.environ, **host_env(testbed.spec)}, start_new_session=True)


def job_of(folder: TrialFolder) -> str:
    submitted = [event for event in read_events(folder.path) if event.kind == "submitted"]
    return str(submitted[-1].details["job_id"])
