"""Attempts in real jobs: what they find on their nodes, and what is left of one whose supervisor Slurm killed."""

import os
import shlex
from pathlib import Path

from node_failures import read_only
from virtual_cluster import Testbed, wait_for

from fake_trials import SUPERVISOR, make_trial, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.attempt.nodes import read_told
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.cluster import ClusterSettings

CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")


def submit(testbed: Testbed, folder: TrialFolder, *options: str) -> str:
    """Start the trial's supervisor as a job does."""
    command = shlex.join((*SUPERVISOR, str(folder.path)))
    env = f"--export=ALL,PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
    fixed = ("--partition=main", "--ntasks-per-node=1", "--mem=64", "--time=5", "--no-requeue", env)
    return testbed.submit(*fixed, *options, f"--wrap=exec {command}", cwd=folder.path)


def test_two_well_nodes_tell_of_themselves_and_the_trial_runs(testbed: Testbed, tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(cluster=CLUSTER, nodes=2, ranks=2))
    testbed.wait(submit(testbed, folder, "--nodelist=n3,n4"))
    end = read_artifact(folder.end(1), AttemptEnd)
    assert (end.verdict, end.node_faults) == (Verdict.COMPLETED, ())
    assert {facts.node for facts in read_told(folder.attempt(1) / "nodes", 2)} == {"n3", "n4"}


def test_a_node_that_alone_cannot_write_ends_the_attempt_by_its_name(testbed: Testbed, tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(cluster=CLUSTER, nodes=2, ranks=2))
    with read_only(testbed, "n4", tmp_path):
        testbed.wait(submit(testbed, folder, "--nodelist=n3,n4"))
    end = read_artifact(folder.end(1), AttemptEnd)
    assert (end.verdict, [(fault.node, fault.hard) for fault in end.node_faults]) == (
        Verdict.NODE_FAIL,
        [("n4", True)],
    )
    assert end.evidence.startswith("node n4 is not fit: it cannot write in ")
    assert not folder.rank_log(1, 0).exists()


def test_a_supervisor_that_slurm_kills_leaves_the_cause(testbed: Testbed, tmp_path: Path) -> None:
    folder = write_trial(tmp_path, make_trial(behaviour="deaf", cluster=CLUSTER))
    job = submit(testbed, folder, "--nodes=1")
    wait_for(lambda: folder.rank_log(1, 0).exists() and "pid" in folder.rank_log(1, 0).read_text(), 60)
    testbed.run("scancel", "--full", job)
    testbed.wait(job)
    end = read_end(folder.end(1))
    assert not folder.end(1).exists()
    assert end is not None
    assert (end.verdict, end.evidence) == (Verdict.CANCELLED, "cancelled by scancel; its supervisor told no more")
