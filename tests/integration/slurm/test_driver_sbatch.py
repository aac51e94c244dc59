"""`windtunnel sweep STUDY --driver=sbatch` whole: Snakemake in a small job, which is killed, and the same command."""

import sys
from pathlib import Path

from measured_project import PROFILE, write_project
from virtual_cluster import Testbed, read_if_there, wait_for

from windtunnel.artifacts import read_artifact
from windtunnel.launch.detach import read_driver_job
from windtunnel.ledger.log import read_events
from windtunnel.process import Finished
from windtunnel.records.trial import Sweep, Verdict

STUDY = """# @package _global_
defaults:
  - override /workload: command
workload:
  argv: [python3, program.py, "{lr}"]
  parameters: {lr: 0}
space:
  values:
    workload.parameters.lr: [1, 2]
sweep: {poll_s: 2, marker_poll_s: 0.2, settle_s: 5}
"""
# Begins, and ends once it may: the driver is killed in between, whatever this machine's speed.
PROGRAM = """
import json, os, sys, time
deadline = time.monotonic() + 200
while not os.path.exists("go") and time.monotonic() < deadline:
    time.sleep(0.1)
with open(os.environ["WINDTUNNEL_METRICS"], "a") as metrics:
    print(json.dumps({"step": 1, "loss": float(sys.argv[1]), "done": True, "validation_loss": 0.5}), file=metrics)
"""


def test_a_study_driven_by_a_job_is_published_though_that_job_was_killed(testbed: Testbed, tmp_path: Path) -> None:
    project, results, log = tmp_path, tmp_path / "results", tmp_path / "results/mine/driver.log"
    write_project(project, study=STUDY, program=PROGRAM)
    assert "study mine is driven by job" in sweep(testbed, project).stdout
    first = driver_of(results)
    wait_for(lambda: all_run(results), 120)
    again = sweep(testbed, project, check=False)
    assert again.code != 0
    assert "study mine is driven by" in again.stderr
    testbed.run("scancel", "--signal=KILL", "--full", first)
    testbed.wait(first)
    sweep(testbed, project)
    second = driver_of(results)
    assert second != first
    wait_for(lambda: read_if_there(log).count("already under way") == 2, 120)
    (project / "go").touch()
    assert testbed.wait(second) == ["COMPLETED"], log.read_text()
    done = read_artifact(results / "mine/sweep.json", Sweep)
    assert [(entry.verdict, entry.attempts) for entry in done.entries] == [(Verdict.COMPLETED, 1)] * 2


def sweep(testbed: Testbed, project: Path, *, check: bool = True) -> Finished:
    words = ("sweep", "mine", "--driver=sbatch", f"--profile={PROFILE}")
    return testbed.run(sys.executable, "-m", "windtunnel.cli.main", *words, cwd=project, check=check)


def driver_of(results: Path) -> str:
    job = read_driver_job(results / "mine")
    assert job is not None
    return job.job_id


def all_run(results: Path) -> bool:
    ledgers = list(results.glob("trials/*/ledger.jsonl"))
    events = [[event.kind for event in read_events(ledger.parent)] for ledger in ledgers]
    return len(events) == 2 and all("started" in kinds for kinds in events)
