"""A user's own program as a trial of several nodes, its ranks started by srun and by mpiexec alike."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from virtual_cluster import Testbed

from command_trials import TELLS, make_command, write_command
from windtunnel.artifacts import read_artifact
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import AttemptEnd, TrialOutcome, Verdict
from windtunnel.settings.cluster import ClusterSettings

CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0", log_limit="1M")
# Rank 0 adds up what the others send; each tells where it is.
MEETS = """
import socket, time
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
# In one write: mpiexec mixes what ranks say at once.
sys.stdout.write(f"rank {rank} of {ranks} local {os.environ['LOCAL_RANK']} host {socket.gethostname()}\\n")
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        server.settimeout(60)
        total = sum(int(server.accept()[0].recv(8)) for _ in range(ranks - 1))
    tell(step=total, done=True)
else:
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(place, timeout=10) as client:
                client.sendall(b"%d" % rank)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
"""
STARTS: dict[str, dict[str, Any]] = {
    "srun": {"start": "ranks"},
    "mpiexec": {
        "start": "mpiexec",
        "mpiexec": ["mpiexec", "-n", "{ranks}", "--hostfile", "{hosts}", "--map-by", "seq"],
        "environment": {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    },
}


@pytest.mark.parametrize("launcher", STARTS)
def test_ranks_find_each_other_whoever_starts_them(testbed: Testbed, tmp_path: Path, launcher: str) -> None:
    path = shutil.which("mpiexec", path="/usr/bin:/bin")
    if launcher == "mpiexec" and path is None:
        pytest.skip("no mpiexec of the system")
    folder = run_there(testbed, tmp_path, MEETS, **STARTS[launcher])
    end = read_artifact(folder.end(1), AttemptEnd)
    said = "".join(log.read_text() for log in sorted(folder.attempt(1).glob("rank-*.log")))
    assert end.verdict == Verdict.COMPLETED, f"{end.evidence}\n{said}"
    outcome = read_artifact(folder.done, TrialOutcome)
    assert outcome.steps == 1 + 2 + 3
    places = sorted(line.split() for line in said.splitlines() if line.startswith("rank"))
    assert [(line[1], line[5]) for line in places] == [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")]
    assert tuple(line[7] for line in places) == outcome.rank_hosts


def test_another_nodes_rank_is_named_as_the_cause_and_endless_output_is_cut(testbed: Testbed, tmp_path: Path) -> None:
    text = """
if os.environ["RANK"] == "3":
    for _ in range(3000): print("x" * 1000)
    print("the disk is gone")
    sys.exit(1)
import time
time.sleep(600)
"""
    folder = run_there(testbed, tmp_path, text)
    end = read_artifact(folder.end(1), AttemptEnd)
    told = f"rank 3 on {end.hosts[1]} ended with code 1: the disk is gone"
    assert (end.verdict, end.evidence) == (Verdict.FAILED, told)
    log = folder.rank_log(1, 3)
    assert log.stat().st_size <= 1 << 20
    assert "bytes left out here" in log.read_text()


def run_there(testbed: Testbed, folder: Path, text: str, **settings: Any) -> TrialFolder:
    """Run a program of this text as a trial of 4 ranks on 2 nodes."""
    (folder / "program.py").write_text(TELLS + "\n".join(f"    {line}" for line in text.splitlines()) + "\n")
    trial = make_command(sys.executable, "program.py", cluster=CLUSTER, ranks=4, nodes=2, **settings)
    written = write_command(folder / "store", trial, folder)
    script = folder / "job.sh"
    # The system's MPI first: another one that pip brought knows no Slurm.
    path = "export PATH=/usr/bin:/bin:$PATH"
    script.write_text(f"#!/bin/sh\n{path}\nexec {sys.executable} -m windtunnel.cli.main trial {written.path}\n")
    job = testbed.submit("--nodes=2", "--ntasks-per-node=2", "--mem=200", "--time=5", str(script), cwd=folder)
    testbed.wait(job)
    return written
