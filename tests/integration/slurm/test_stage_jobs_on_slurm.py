"""Stages that are jobs of their own, under Snakemake's Slurm plugin: one that is taken away ends the workflow."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_cluster import Testbed, wait_for

from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

# Goes before the command on PATH in every shell of the workflow: the stage says which job it is, and never ends.
STAND_IN = """
windtunnel() { mkdir -p began; touch "began/$SLURM_JOB_ID"; exec sleep 600; }
"""


@pytest.fixture
def stage(testbed: Testbed, project_dir: Path, tmp_path: Path) -> "Iterator[tuple[subprocess.Popen[bytes], str]]":
    """A workflow whose first stage runs as a job for ever: its Snakemake, and the job's id."""
    shutil.copytree(project_dir / "conf", tmp_path / "conf", ignore=shutil.ignore_patterns("local"))
    (tmp_path / "stand_in.sh").write_text(STAND_IN)
    profile = ("--profile", str(project_dir / "cluster_profiles/testbed"), "--until", "ingest")
    argv = (sys.executable, "-m", "snakemake", "--snakefile", str(project_dir / "Snakefile"), *profile)
    env = {**os.environ, **host_env(testbed.spec), "BASH_ENV": str(tmp_path / "stand_in.sh")}
    command = enter_argv(testbed.spec, login_host(testbed.spec).name, argv)
    with (tmp_path / "snakemake.log").open("wb") as log:
        workflow = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log, start_new_session=True)
    wait_for(lambda: workflow.poll() is not None or any(tmp_path.glob("began/*")), 120)
    assert workflow.poll() is None, (tmp_path / "snakemake.log").read_text()
    yield workflow, next(tmp_path.glob("began/*")).name
    workflow.kill()
    workflow.wait()


def test_a_stages_job_that_its_user_cancels_ends_the_workflow_with_an_error(
    testbed: Testbed, tmp_path: Path, stage: "tuple[subprocess.Popen[bytes], str]"
) -> None:
    workflow, job = stage
    testbed.run("scancel", job)
    assert workflow.wait(180) == 1  # the plugin looks less often the longer nothing ends
    said = (tmp_path / "snakemake.log").read_text()
    assert f"SLURM-job '{job}' failed, SLURM status is: 'CANCELLED'" in said
    assert not any(tmp_path.glob("results/shards/*/MANIFEST.json"))
