"""A bad night, live: nodes that die, preemptions of both kinds, and time limits, under one driver at once.

All limits are under ten minutes: there clocks alone cannot tell a preemption from a time limit.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from node_failures import kill_node, revive_node
from virtual_cluster import Testbed, wait_for

from fake_driver import write_study
from fake_trials import make_trial
from windtunnel.artifacts import read_artifact
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder
from windtunnel.ledger.log import Event, read_events
from windtunnel.ledger.nodes import read_failures
from windtunnel.ledger.retries import read_retried
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import AttemptEnd, Sweep, SweepEntry, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

DRIVER = (sys.executable, str(Path(__file__).parents[2] / "fake_driver.py"))
CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
SWEEP = SweepSettings(marker_poll_s=0.2, poll_s=2.0, settle_s=3.0)
PARTITIONS = {
    "frail": ("n5,n6,n7", "REQUEUE"),
    "spare": ("n3,n4", "REQUEUE"),
    "cheap": ("n1,n2", "CANCEL"),
}


@dataclass(frozen=True)
class Night:
    """What the sweep left in `root`, by the trials' names."""

    root: Path
    code: int
    trials: dict[str, PlannedTrial]
    entries: dict[str, SweepEntry]

    def folder(self, name: str) -> TrialFolder:
        return trial_folder(self.root, self.trials[name].id)

    def events(self, name: str) -> list[Event]:
        return read_events(self.folder(name).path)

    def ends(self, name: str) -> dict[int, AttemptEnd]:
        folder = self.folder(name)
        found = {number: read_end(folder.end(number)) for number in read_attempt_numbers(folder)}
        return {number: end for number, end in found.items() if end is not None}

    def judged(self, name: str) -> list[tuple[str, str]]:
        """Verdicts that the driver wrote down, with their evidence."""
        told = [event.details for event in self.events(name) if event.kind == "verdict"]
        return [(details["verdict"], details["evidence"]) for details in told]

    def retried(self, name: str) -> Counter[Verdict]:
        """What counts against the trial's budgets."""
        return Counter(ending.verdict for ending in read_retried(self.events(name), self.ends(name)))

    def count(self, name: str, kind: str) -> int:
        return [event.kind for event in self.events(name)].count(kind)


@pytest.fixture(scope="module")
def night(testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """All of it at once, so that the waits for Slurm's clocks are one wait."""
    root = tmp_path_factory.mktemp("night")
    with ExitStack() as after:
        for name, (nodes, mode) in PARTITIONS.items():
            wanted = (f"PartitionName={name}", f"Nodes={nodes}", f"PreemptMode={mode}", "PriorityTier=1", "State=UP")
            testbed.run("scontrol", "create", *wanted)
            after.callback(testbed.run, "scontrol", "delete", f"PartitionName={name}")
        yield run_night(testbed, root, after)


def run_night(testbed: Testbed, root: Path, after: ExitStack) -> Night:
    trials = {
        "dead, requeued": on("frail", 0),
        "dead, not requeued": on("frail", 1, flags=(("no-requeue", ""),)),
        "preempted, requeued": on("spare", 2),
        "preempted, ended": on("cheap", 3),
        "requeued": on("main", 6),
        "cancelled": on("main", 7),
        # Slurm's warning comes 20 to 50 s after the start.
        "timed out": on("main", 4, steps=55, step_s=1.0, time_min=1, behaviour="keep checkpoints"),
        "timed out idle": on("main", 5, steps=1000, time_min=1),
    }
    write_study(root, list(trials.values()), SweepStageSettings(study="made_up", cluster=CLUSTER, sweep=SWEEP))
    folders = {name: trial_folder(root, trial.id) for name, trial in trials.items()}
    driver = start_driver(testbed, root)
    after.callback(driver.kill)
    for folder in folders.values():
        wait_for(lambda step=folder.path / "fake_step": step.exists() and int(step.read_text()) > 3, 60)
    hosts = {name: find_host(folder) for name, folder in folders.items()}
    for name in ("preempted, requeued", "preempted, ended"):
        preempt(testbed, hosts[name], root)
    for name, command in (("requeued", ("scontrol", "requeue")), ("cancelled", ("scancel",))):
        testbed.run(*command, find_job(folders[name]))
    dead = [name for name in trials if name.startswith("dead")]
    for host in sorted({hosts[name] for name in dead}):
        kill_node(testbed, host)
        after.callback(revive_node, testbed, host)
    for name in dead:
        age_heartbeat(folders[name])
    code = driver.wait(150)
    sweep = read_artifact(root / "study" / ("sweep.partial.json" if code else "sweep.json"), Sweep)
    by_id = {entry.trial_id: entry for entry in sweep.entries}
    return Night(root, code, trials, {name: by_id[trial.id] for name, trial in trials.items()})


@pytest.mark.parametrize("name", ["dead, requeued", "dead, not requeued"])
def test_a_trial_outlives_its_node_and_no_budget_of_its_own_errors_pays_for_it(night: Night, name: str) -> None:
    entry = night.entries[name]
    assert entry.verdict == Verdict.COMPLETED, entry.evidence
    assert night.retried(name) == {Verdict.NODE_FAIL: 1}
    first, second = (event.details["hosts"] for event in night.events(name) if event.kind == "started")
    assert first != second
    assert entry.outcome is not None
    assert (entry.outcome.resumed_from_step or 0) > 3


def test_slurms_word_on_a_dead_node_is_the_evidence_of_the_verdict(night: Night) -> None:
    ((verdict, evidence),) = night.judged("dead, not requeued")
    assert verdict == Verdict.NODE_FAIL
    assert "Slurm says NODE_FAIL of job" in evidence
    assert night.count("dead, requeued", "submitted") == 1
    assert night.count("dead, not requeued", "submitted") == 2


def test_a_node_that_died_is_remembered_by_the_store(night: Night) -> None:
    remembered = {(failure.trial_id, failure.verdict, failure.node) for failure in read_failures(night.root)}
    for name in ("dead, requeued", "dead, not requeued"):
        first = next(event.details["hosts"] for event in night.events(name) if event.kind == "started")
        assert (night.trials[name].id, Verdict.NODE_FAIL, first[0]) in remembered
    assert len(remembered) == 2


@pytest.mark.parametrize(("name", "submissions"), [("preempted, requeued", 1), ("preempted, ended", 2)])
def test_a_preempted_trial_goes_on_from_its_checkpoint_whichever_way_it_was_preempted(
    night: Night, name: str, submissions: int
) -> None:
    entry = night.entries[name]
    assert (entry.verdict, entry.attempts) == (Verdict.COMPLETED, 2), entry.evidence
    first = night.ends(name)[1]
    assert (first.verdict, first.evidence) == (Verdict.PREEMPTED, "preempted by Slurm")
    assert night.count(name, "submitted") == submissions
    assert entry.outcome is not None
    assert (entry.outcome.resumed_from_step or 0) > 3


def test_a_requeued_trial_goes_on_and_one_that_its_user_cancelled_does_not(night: Night) -> None:
    first = night.ends("requeued")[1]
    assert (first.verdict, first.evidence) == (Verdict.PREEMPTED, "requeued by Slurm")
    assert (night.entries["requeued"].verdict, night.count("requeued", "submitted")) == (Verdict.COMPLETED, 1)
    end = night.ends("cancelled")[1]
    assert (end.verdict, end.evidence) == (Verdict.CANCELLED, "cancelled by scancel")
    entry = night.entries["cancelled"]
    assert (entry.verdict, entry.attempts, night.count("cancelled", "submitted")) == (Verdict.CANCELLED, 1, 1)


def test_only_a_preemption_that_ended_the_job_counts_and_slurm_has_told_of_it(night: Night) -> None:
    assert not night.retried("preempted, requeued")
    assert night.retried("preempted, ended") == {Verdict.PREEMPTED: 1}
    ((verdict, evidence),) = night.judged("preempted, ended")
    assert verdict == Verdict.PREEMPTED
    assert "Slurm says PREEMPTED of job" in evidence


def test_a_trial_past_its_time_limit_is_timed_out_and_goes_on_if_it_left_a_checkpoint(night: Night) -> None:
    *earlier, last = night.ends("timed out").values()
    assert earlier
    assert {(end.verdict, end.evidence) for end in earlier} == {(Verdict.TIMEOUT, "stopped at its time limit")}
    assert night.retried("timed out") == {Verdict.TIMEOUT: len(earlier)}
    assert last.verdict == night.entries["timed out"].verdict == Verdict.COMPLETED


def test_a_trial_past_its_time_limit_without_a_checkpoint_is_left_to_the_next_command(night: Night) -> None:
    entry = night.entries["timed out idle"]
    assert (entry.verdict, entry.attempts) == (Verdict.TIMEOUT, 1)
    assert "not tried again: it made no checkpoint at all within its time limit" in entry.evidence
    assert night.code == 1, "so that the sweep is not finished"


def on(
    partition: str, number: int, *, flags: tuple[tuple[str, str], ...] = (), time_min: int = 3, **details: Any
) -> PlannedTrial:
    """A trial of a dozen seconds."""
    wanted = {"steps": 50, "step_s": 0.25, **details}
    trial = make_trial(f"{number:x}", cluster=CLUSTER, time_min=time_min, **wanted)
    return replace(trial, shape=replace(trial.shape, partition=partition, flags=flags))


def start_driver(testbed: Testbed, root: Path) -> "subprocess.Popen[bytes]":
    argv = enter_argv(testbed.spec, login_host(testbed.spec).name, [*DRIVER, str(root)])
    return subprocess.Popen(argv, env={**os.environ, **host_env(testbed.spec)}, start_new_session=True)


def find_job(folder: TrialFolder) -> str:
    return next(str(event.details["job_id"]) for event in read_events(folder.path) if event.kind == "started")


def find_host(folder: TrialFolder) -> str:
    return next(str(event.details["hosts"][0]) for event in read_events(folder.path) if event.kind == "started")


def preempt(testbed: Testbed, host: str, cwd: Path) -> None:
    """A short job that outranks whatever the node runs."""
    where = ("--partition=urgent", f"--nodelist={host}", "--exclusive", "--mem=100", "--time=1")
    testbed.submit(*where, "--output=/dev/null", "--wrap=sleep 1", cwd=cwd)


def age_heartbeat(folder: TrialFolder) -> None:
    """The 90 s that others wait for a supervisor on another host, without waiting."""
    for path in folder.lease.glob("[0-9]*"):
        os.utime(path, (time.time() - 100, time.time() - 100))
