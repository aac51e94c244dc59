"""Attempts whose node is looked at first, in a job that only this process's environment tells of."""

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_trial, write_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt import nodes
from windtunnel.attempt.breaker import MAX_RESTARTS, find_stuck
from windtunnel.attempt.nodes import check_nodes, plan_check
from windtunnel.attempt.pack import run_pack
from windtunnel.attempt.program import AttemptFiles
from windtunnel.attempt.ranks import StopRequest
from windtunnel.attempt.run import run_attempt
from windtunnel.ledger.layout import TrialFolder, write_next_attempt
from windtunnel.ledger.log import Event, read_events
from windtunnel.records.plan import Shape
from windtunnel.records.trial import AttemptEnd, NodeFault, TrialConfig, Verdict
from windtunnel.settings.cluster import ClusterSettings

SLURM = ClusterSettings(kind="slurm", partition="main")
SHAPE = Shape(1, 1, 1, 0, 64, 5, "main")
LOST = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost."
FAULT = NodeFault("n4", f"nvidia-smi: {LOST}", hard=True)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's only node, whose GPU is gone; the folder of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "nvidia-smi", f"echo {shlex.quote(LOST)}; exit 15")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name, value in (("JOB_NODELIST", "n4"), ("JOB_ID", "7"), ("ARRAY_JOB_ID", ""), ("JOB_PARTITION", "main")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SLURMD_NODENAME", "n4")
    return programs


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def write_gpu_trial(store: Path, name: str = "tcn", *, gpus: int = 1, check: bool = True) -> TrialFolder:
    trial = make_trial(name, cluster=SLURM)
    folder = write_trial(store, replace(trial, shape=replace(trial.shape, gpus_per_node=gpus)))
    write_artifact(folder.config, replace(read_artifact(folder.config, TrialConfig), check_nodes=check))
    return folder


def test_an_attempt_on_an_unfit_node_ends_before_any_rank_with_the_node_and_its_fault(
    node: Path, tmp_path: Path
) -> None:
    folder = write_gpu_trial(tmp_path)
    end = run_attempt(folder.path)
    assert (end.verdict, end.node_faults) == (Verdict.NODE_FAIL, (FAULT,))
    assert end.evidence == f"node n4 is not fit: {FAULT.text}; no rank was started"
    assert [event.kind for event in read_events(folder.path)] == ["started", "ended"]
    assert not folder.rank_log(1, 0).exists()
    assert read_artifact(folder.end(1), AttemptEnd) == end


def test_a_node_is_taken_as_it_is_when_nobody_wants_it_looked_at(node: Path, tmp_path: Path) -> None:
    write_program(node / "srun", "exit 3")
    end = run_attempt(write_gpu_trial(tmp_path, check=False).path)
    assert (end.verdict, end.node_faults) == (Verdict.FAILED, ())


def test_the_trials_after_one_that_met_an_unfit_node_are_left_to_another_job(node: Path, tmp_path: Path) -> None:
    folders = [write_gpu_trial(tmp_path, name) for name in ("first", "second")]
    assert run_pack([folder.path for folder in folders]) == 1
    assert [event.kind for event in read_events(folders[1].path)] == ["waiting"]


def test_unfit_nodes_do_not_make_a_trial_count_as_stuck() -> None:
    numbers = range(1, MAX_RESTARTS + 3)
    events = [Event("started", number, float(number), "n4", 1, {"checkpoint_step": 5}) for number in numbers]
    end = AttemptEnd(1, 69, Verdict.NODE_FAIL, "its node", ("n4",), "7", 1.0)
    unfit = replace(end, node_faults=(FAULT,))
    assert find_stuck(events, dict.fromkeys(numbers, unfit), step=5) == ""
    assert find_stuck(events, dict.fromkeys(numbers, end), step=5) != ""


@pytest.fixture
def files(tmp_path: Path) -> AttemptFiles:
    folder = write_trial(tmp_path, make_trial())
    return AttemptFiles(folder, write_next_attempt(folder))


def look(files: AttemptFiles, *hosts: str, stop: StopRequest | None = None):
    return check_nodes(replace(SHAPE, nodes=len(hosts)), hosts, files, stop=stop or StopRequest(), beat=lambda: None)


def test_a_node_that_hangs_ends_in_a_verdict(
    node: Path, files: AttemptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(node / "python", "exec sleep 600")
    monkeypatch.setattr(sys, "executable", str(node / "python"))
    monkeypatch.setattr(nodes, "CHECK_S", 0.2)
    began = time.monotonic()
    assert look(files, "n4").faults == (NodeFault("n4", "it did not answer", hard=False),)
    assert time.monotonic() - began < 20


def test_nodes_of_which_none_answers_are_not_blamed(
    node: Path, files: AttemptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(node / "srun", "exec sleep 600")
    monkeypatch.setattr(nodes, "CHECK_S", 0.2)
    health = look(files, "n4", "n5")
    assert health.faults == ()
    assert health.unanswered.startswith("none of its nodes answered within ")


def test_a_look_that_slurm_refuses_keeps_nothing_from_running(node: Path, files: AttemptFiles) -> None:
    write_program(node / "srun", "echo 'srun: error: Unable to create step' >&2; exit 1")
    health = look(files, "n4", "n5")
    assert (health.faults, health.unanswered) == ((), "")
    assert health.notes == ("its nodes were not looked at: srun: error: Unable to create step",)


def test_a_stop_request_ends_the_look(node: Path, files: AttemptFiles) -> None:
    write_program(node / "srun", "exec sleep 600")
    stop = StopRequest()
    stop.receive(15, None)
    assert look(files, "n4", "n5", stop=stop).faults == ()


def test_several_nodes_are_looked_at_by_one_step_of_a_task_each(files: AttemptFiles) -> None:
    (process,) = plan_check(replace(SHAPE, nodes=2, ranks_per_node=2, cpus_per_rank=3), ("n4", "n5"), files).processes
    options = process.argv[: process.argv.index("--")]
    assert {"--nodelist=n4,n5", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=6", "--overlap"} < set(options)
