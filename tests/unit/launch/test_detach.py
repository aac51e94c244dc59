import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windtunnel.errors import ClusterError
from windtunnel.launch.detach import (
    DriverJob,
    Start,
    await_driver,
    read_driver_job,
    render_driver_script,
    start_detached,
    submit_driver,
    write_driver_job,
)
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import DriverSettings
from windtunnel.slurm.surroundings import find_strange_variables


def test_a_drivers_script_asks_for_little_and_hides_its_own_job():
    script = render_driver_script(
        ["/opt/bin/python", "-m", "windtunnel", "sweep", "a study", "x=[1,2]"],
        study="mine",
        log=Path("/home/ada/my results/driver.log"),
        cwd=Path("/home/ada"),
        command="windtunnel sweep mine --driver=sbatch",
        driver=DriverSettings(time="2-00:00:00"),
        cluster=ClusterSettings(kind="slurm", partition="main", account="lab"),
    )
    assert script == (Path(__file__).parent / "golden_driver.sh").read_text()


def test_the_drivers_own_partition_comes_before_the_clusters():
    script = render_driver_script(
        ["true"],
        study="mine",
        log=Path("/l"),
        cwd=Path("/"),
        command="again",
        driver=DriverSettings(partition="login_jobs"),
        cluster=ClusterSettings(kind="slurm", partition="main"),
    )
    assert "#SBATCH --partition=login_jobs\n" in script
    assert "account" not in script


def test_a_detached_process_has_its_own_session_and_outlives_a_hang_up(tmp_path):
    log = tmp_path / "study" / "driver.log"
    code = "import os, signal, time; print(os.getsid(0) == os.getpid(), flush=True); time.sleep(60)"
    child = start_detached([sys.executable, "-c", code], log, env={"MARK": "1"})
    deadline = time.monotonic() + 60
    while not log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    assert log.read_text() == "True\n"
    assert child.poll() is None
    child.kill()
    child.wait()


def test_a_driver_that_ends_at_once_is_noticed_and_one_that_drives_is_not_waited_for(tmp_path):
    child = start_detached([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "log", env={})
    assert await_driver(child, lambda: False, deadline_s=60) == Start(drives=False, code=3)
    assert await_driver(child, lambda: True, deadline_s=60) == Start(drives=True)


def test_a_driver_that_does_not_begin_in_time_is_told_from_one_that_drives(tmp_path):
    child = start_detached([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log", env={})
    assert await_driver(child, lambda: False, deadline_s=0) == Start(drives=False)
    assert await_driver(child, lambda: True, deadline_s=0) == Start(drives=True)
    child.kill()
    child.wait()


def test_sbatch_does_not_see_the_job_that_it_was_typed_in(tmp_path, monkeypatch):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\nenv >{tmp_path}/env\ncat >{tmp_path}/script\necho '77;cluster'\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("SLURM_JOB_ID", "SBATCH_PARTITION", "PMI_RANK", "SLURM_CONF", "OMPI_MCA_btl"):
        monkeypatch.setenv(name, "5")
    assert submit_driver("#!/bin/bash\n", environ=os.environ) == "77"
    seen = {line.split("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert {"SLURM_CONF", "OMPI_MCA_btl"} <= seen
    assert not seen & {"SLURM_JOB_ID", "SBATCH_PARTITION", "PMI_RANK"}


def test_a_drivers_script_hides_what_a_command_of_its_job_would_hide_and_no_more():
    script = render_driver_script(
        ["env"],
        study="mine",
        log=Path("/l"),
        cwd=Path("/"),
        command="again",
        driver=DriverSettings(),
        cluster=ClusterSettings(kind="slurm", partition="main"),
    )
    names = ("SLURM_JOB_ID", "SLURM_CONF", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_btl", "HYDRA_FULL_ERROR")
    environ = {"PATH": os.environ["PATH"], **dict.fromkeys(names, "7")}
    said = subprocess.run(["bash"], input=script, env=environ, capture_output=True, text=True, timeout=60).stdout
    seen = {line.partition("=")[0] for line in said.splitlines()} & set(names)
    assert seen == {"SLURM_CONF", "OMPI_MCA_btl", "HYDRA_FULL_ERROR"}
    assert seen == {*names} - set(find_strange_variables(environ))


def test_a_refused_driver_says_why_and_what_else_there_is(tmp_path, monkeypatch):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ClusterError, match="invalid partition; or start it here, with --detach"):
        submit_driver("", environ={})


def test_a_drivers_job_is_remembered(tmp_path):
    assert read_driver_job(tmp_path) is None
    write_driver_job(tmp_path, DriverJob("77", "log", "again"))
    assert read_driver_job(tmp_path).job_id == "77"
