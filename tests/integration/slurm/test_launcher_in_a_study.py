"""`windtunnel train -m` on Slurm, with a study file that names the launcher itself."""

import importlib.util
import sys
from pathlib import Path

import pytest
from measured_project import PROFILE, write_project
from virtual_cluster import Testbed

from windtunnel.artifacts import read_artifact
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import read_events
from windtunnel.process import Finished
from windtunnel.records.trial import Sweep, Verdict

STUDY = """# @package _global_
defaults:
  - override /workload: command
  - override /cluster: testbed
  - override /hydra/launcher: {launcher}
workload:
  argv: [python3, program.py, "{{lr}}"]
  parameters: {{lr: 0}}
sweep: {{poll_s: 2, marker_poll_s: 0.2, objective: validation_loss}}
"""
PROGRAM = """
import json, os, sys
with open(os.environ["WINDTUNNEL_METRICS"], "a") as metrics:
    loss = float(sys.argv[1])
    print(json.dumps({"step": 1, "loss": loss, "done": True, "validation_loss": loss}), file=metrics)
"""


def test_a_study_that_names_our_launcher_runs_as_one_that_names_none(testbed: Testbed, tmp_path: Path) -> None:
    ended = multirun(testbed, tmp_path, "windtunnel")
    assert ended.code == 0, ended.stdout + ended.stderr
    entries = read_artifact(tmp_path / "multirun/sweep.json", Sweep).entries
    assert [entry.verdict for entry in entries] == [Verdict.COMPLETED] * 2
    assert [entry.outcome.evaluations[0].loss for entry in entries if entry.outcome is not None] == [0.5, 0.25]
    events = [read_events(trial_folder(tmp_path / "results", entry.trial_id).path) for entry in entries]
    jobs = [event.details["job_id"] for each in events for event in each if event.kind == "submitted"]
    assert len({job.partition("_")[0] for job in jobs}) == 1, "one array"


@pytest.mark.skipif(
    importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None,
    reason="no hydra-submitit-launcher: pip install -r envs/test.txt",
)
@pytest.mark.parametrize("launcher", ["submitit_slurm", "submitit_local"])
def test_a_study_that_names_another_launcher_is_refused_before_anything_is_submitted(
    testbed: Testbed, tmp_path: Path, launcher: str
) -> None:
    ended = multirun(testbed, tmp_path, launcher)
    assert ended.code == 2
    assert f"hydra/launcher={launcher} cannot run these trials" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "results/trials").exists()
    assert not (tmp_path / "multirun").exists()


def multirun(testbed: Testbed, folder: Path, launcher: str) -> Finished:
    write_project(folder, study=STUDY.format(launcher=launcher), program=PROGRAM)
    words = ("train", "-m", "study=mine", "workload.parameters.lr=0.5,0.25", "hydra.sweep.dir=multirun")
    env = {"SNAKEMAKE_PROFILE": PROFILE}
    return testbed.run(sys.executable, "-m", "windtunnel.cli.main", *words, cwd=folder, env=env, check=False)
