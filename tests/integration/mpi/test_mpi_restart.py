import os
import sys

import pytest

from windtunnel.cli.mpi import find_mpiexec, local_env


def test_ranks_on_this_host_know_nothing_of_the_slurm_job_around_them():
    env = local_env({"SLURM_JOB_ID": "7", "PMI_RANK": "0", "PMIX_RANK": "0", "HOME": "/root"})
    assert env["HOME"] == "/root"
    assert not [key for key in env if key.startswith(("SLURM_", "PMI_", "PMIX_"))]


def test_an_mpiexec_whose_ranks_do_not_join_does_not_fit(tmp_path, monkeypatch):
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho size 1\necho size 1\n")  # two worlds of one rank
    mpiexec.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    assert find_mpiexec(2, {"PATH": "/usr/bin:/bin"}) is None


@pytest.mark.mpi
def test_an_mpiexec_that_does_not_fit_hides_none_behind_it(tmp_path, monkeypatch):
    stranger = tmp_path / "mpiexec"
    stranger.write_text("#!/bin/sh\necho size 1\n")
    stranger.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = find_mpiexec(2, local_env({"PATH": "/usr/bin:/bin", "HOME": "/root"}))
    assert found not in (None, str(stranger))


@pytest.mark.mpi
def test_an_mpiexec_that_is_found_joins_its_ranks():
    found = find_mpiexec(2, local_env({"PATH": "/usr/bin:/bin", "HOME": "/root"}))
    assert found is not None
