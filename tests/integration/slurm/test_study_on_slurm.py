"""The whole DAG on a Slurm of several nodes: the same losses as on one machine, and whole after a kill."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interrupted_study import kill_everything, list_trials, make_project, read_outcome, wait_for_the_middle
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

FAST = ("--config", "overrides=+debug=fast training.precision=fp32")


def _snakemake(project: Path, profile: str, *words: str) -> list[str]:
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(project / "Snakefile")]
    return [*argv, "--profile", str(project / "cluster_profiles" / profile), *words]


def _losses(folder: Path) -> dict[str, list]:
    """Every loss of every trial of the study, by the trial's name."""
    entries = json.loads((folder / "results/quickstart/sweep.json").read_text())["content"]["entries"]
    losses = {}
    for entry in entries:
        assert entry["verdict"] == "COMPLETED", entry["evidence"]
        lines = (folder / "results/trials" / entry["trial_id"] / "metrics.jsonl").read_text().splitlines()
        steps = [(json.loads(line)["step"], json.loads(line)["loss"]) for line in lines]
        scores = [(score["split"], score["loss"], score["metrics"]) for score in entry["outcome"]["evaluations"]]
        losses[entry["name"]] = [steps, scores]
    return losses


@pytest.fixture(scope="module")
def there(tmp_path_factory, project_dir) -> Path:
    """Where both studies run on Slurm; they share shards, features and cluster facts, as studies do."""
    return make_project(tmp_path_factory.mktemp("there"), project_dir)


@pytest.mark.timeout(900)
def test_the_quickstart_study_has_the_same_losses_on_slurm_and_on_one_machine(testbed, project_dir, tmp_path, there):
    here = make_project(tmp_path, project_dir)
    until_the_sweep = [*_snakemake(project_dir, "local", *FAST), "--until", "sweep"]
    local = subprocess.run(until_the_sweep, cwd=here, capture_output=True, text=True, timeout=400)
    assert local.returncode == 0, local.stdout[-4000:] + local.stderr[-4000:]
    slurm = testbed.run(*_snakemake(project_dir, "testbed", *FAST), cwd=there, timeout_s=600, check=False)
    assert slurm.code == 0, slurm.stdout[-4000:] + slurm.stderr[-4000:]
    assert (there / "results/quickstart/report.html").is_file()
    assert len(_losses(here)) == 4, "two models in two layouts"
    assert _losses(here) == _losses(there)


@pytest.mark.timeout(900)
def test_the_same_command_finishes_a_study_that_was_killed_on_slurm(testbed, project_dir, there):
    argv = _snakemake(project_dir, "testbed", "--config", "study=interrupted")
    command = enter_argv(testbed.spec, login_host(testbed.spec).name, argv)
    with (there / "first.log").open("w") as log:
        env = {**os.environ, **host_env(testbed.spec)}
        driver = subprocess.Popen(command, cwd=there, env=env, stdout=log, stderr=log, start_new_session=True)
    wait_for_the_middle(there, lambda: driver.poll() is None)
    second = testbed.run(*argv, cwd=there, check=False, timeout_s=120)
    assert second.code == 1
    assert "study interrupted is driven by pid" in second.stdout + second.stderr
    kill_everything(driver.pid, there)
    driver.wait()
    short, long = list_trials(there)
    finished_at = (short / "DONE.json").stat().st_mtime_ns

    again = testbed.run(*argv, cwd=there, check=False, timeout_s=600)
    assert again.code == 0, again.stdout[-4000:] + again.stderr[-4000:]
    assert (there / "results/interrupted/report.html").is_file()
    assert (short / "DONE.json").stat().st_mtime_ns == finished_at
    assert [path.name for path in (short / "attempts").iterdir()] == ["1"]
    assert read_outcome(long)["attempt"] == 2
    assert read_outcome(long)["resumed_from_step"] >= 20
