import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from windtunnel.artifacts import read_artifact
from windtunnel.records.cluster import Collectives, Topology

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="the testbed's links need root"),
]
WINDTUNNEL = (sys.executable, "-m", "windtunnel.cli.main")


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        place = Path(folder) / "bed"
        subprocess.run([*WINDTUNNEL, "testbed", "up", f"--dir={place}", "--nodes=4", "--no-accounting"], check=True)
        yield place
        subprocess.run([*WINDTUNNEL, "testbed", "down", f"--dir={place}"], check=True)


def run_topology(bed, folder, *srun, partition="main"):
    settings = {"kind": "slurm", "partition": partition, "network_interface": "eth0"}
    (folder / "settings.yaml").write_text(json.dumps(settings))
    stage = [*WINDTUNNEL, "topology", f"--settings={folder / 'settings.yaml'}"]
    files = [f"--out={folder / 'topology.json'}", f"--collectives={folder / 'collectives.json'}"]
    argv = [*WINDTUNNEL, "testbed", "run", f"--dir={bed}", "--", *srun, *stage, *files]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def test_a_job_of_four_nodes_measures_them_in_the_order_of_leaves(bed, tmp_path):
    # A step that holds one CPU inside the job is how a workflow's rule runs.
    ended = run_topology(bed, tmp_path, "salloc", "--nodes=4", "--ntasks=4", "srun", "--nodes=1", "--ntasks=1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    topology = read_artifact(tmp_path / "topology.json", Topology)
    collectives = read_artifact(tmp_path / "collectives.json", Collectives)
    assert [node.switches for node in topology.nodes] == [("spine", f"leaf{i % 2}") for i in range(4)]
    assert collectives.hosts == ("n0", "n2", "n1", "n3")
    assert {timing.nodes for timing in collectives.timings} == {4}


def test_a_job_of_one_cpu_measures_two_ranks_on_its_node(bed, tmp_path):
    ended = run_topology(bed, tmp_path, "srun", "--nodes=1", "--ntasks=1", "--nodelist=n3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert read_artifact(tmp_path / "collectives.json", Collectives).hosts == ("n3", "n3")


def test_the_login_node_is_no_place_to_measure(bed, tmp_path):
    ended = run_topology(bed, tmp_path)
    assert ended.returncode == 2
    assert "inside a job" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_partition_is_refused_with_the_known_ones(bed, tmp_path):
    ended = run_topology(bed, tmp_path, partition="nowhere")
    assert ended.returncode == 2
    assert "'nowhere' does not exist" in ended.stderr
    assert "main" in ended.stderr
