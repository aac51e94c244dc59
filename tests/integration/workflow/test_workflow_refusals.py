"""What the workflow refuses before anything is submitted, and a project of a user's own."""

import os
import socket
import subprocess
import sys
import time

import pytest

from windtunnel.cli.driver import DRIVER_FOLDER
from windtunnel.ledger.lease import take_lease


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("study=nope", "study 'nope' is not known; known: quickstart, ticks; or write conf/study/nope.yaml"),
        ("overrides=parallelism.data=3", "a batch of 64 does not divide over 3 data-parallel ranks: set "),
        ("overrides=data.files=[nope.csv]", "raw file 'nope.csv' does not exist"),
        ("overrides=model._target_=no_module.Net", "_target_ 'no_module.Net': no module 'no_module' in "),
        ("overrides=features.reference=nope", "features.reference='nope' is no instrument of dataset 'arch_daily'"),
    ],
)
def test_a_users_mistake_is_a_workflow_error_and_nothing_runs(workdir, snakemake, config, message):
    finished = snakemake("--config", config)
    assert finished.returncode == 1
    assert "WorkflowError" in finished.stderr
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (workdir / "results").exists()


def test_a_second_driver_of_a_live_one_is_refused_by_name(workdir, snakemake):
    lease = take_lease(workdir / "results/quickstart" / DRIVER_FOLDER, "study quickstart")
    try:
        finished = snakemake("results/config/quickstart/report.yaml", stand_in=True)
    finally:
        lease.release()
    assert finished.returncode == 1
    assert "WorkflowError" in finished.stderr
    assert "BusyError" not in finished.stderr
    assert f"study quickstart is driven by pid {os.getpid()} on host {socket.gethostname()}" in finished.stderr
    assert snakemake("results/config/quickstart/report.yaml", stand_in=True).returncode == 0


def test_a_dead_drivers_study_is_taken_over_at_once(workdir, snakemake):
    code = "import sys, time; from pathlib import Path; from windtunnel.ledger.lease import take_lease;"
    code += "take_lease(Path(sys.argv[1]), 'study quickstart'); print('held', flush=True); time.sleep(60)"
    folder = str(workdir / "results/quickstart" / DRIVER_FOLDER)
    with subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    started = time.monotonic()
    assert snakemake("results/config/quickstart/report.yaml", stand_in=True).returncode == 0
    assert time.monotonic() - started < 60


def test_a_project_of_ones_own_builds_its_study_by_our_rules(tmp_path, snakemake):
    folder = tmp_path / "mine"
    subprocess.run([sys.executable, "-m", "windtunnel", "init", str(folder)], check=True, capture_output=True)
    finished = snakemake("--directory", str(folder), "--dry-run", snakefile=folder / "Snakefile")
    text = finished.stdout + finished.stderr
    assert finished.returncode == 0, text
    assert "results/mine/report.html" in text
    assert "results/quickstart" not in text
    made = snakemake("--directory", str(folder), "results/config/mine/plan.yaml", snakefile=folder / "Snakefile")
    assert made.returncode == 0, made.stderr
    assert "my_model.MyModel" in (folder / "results/config/mine/plan.yaml").read_text()
