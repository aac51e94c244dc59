"""The topology stage inside jobs of the session's testbed."""

import json

from windtunnel.artifacts import read_artifact
from windtunnel.process import Finished
from windtunnel.records.cluster import Collectives, Topology


def run_topology(testbed, windtunnel, folder, *launcher, partition="main") -> Finished:
    settings = {"kind": "slurm", "partition": partition, "network_interface": "eth0"}
    (folder / "settings.yaml").write_text(json.dumps(settings))
    files = (f"--out={folder / 'topology.json'}", f"--collectives={folder / 'collectives.json'}")
    stage = (*windtunnel, "topology", f"--settings={folder / 'settings.yaml'}", *files)
    return testbed.run(*launcher, *stage, check=False)


def test_a_job_of_four_nodes_measures_them_in_the_order_of_leaves(testbed, windtunnel, tmp_path):
    # A step that holds one CPU inside the job is how a workflow's rule runs.
    job = ("salloc", "--nodes=4", "--ntasks=4", "--nodelist=n[0-3]", "srun", "--nodes=1", "--ntasks=1")
    ended = run_topology(testbed, windtunnel, tmp_path, *job)
    assert ended.code == 0, ended.stdout + ended.stderr
    topology = read_artifact(tmp_path / "topology.json", Topology)
    collectives = read_artifact(tmp_path / "collectives.json", Collectives)
    assert [node.switches for node in topology.nodes[:4]] == [("spine", f"leaf{i % 2}") for i in range(4)]
    assert {node.gpus for node in topology.nodes} == {4}
    assert collectives.hosts == ("n0", "n2", "n1", "n3")
    assert {timing.nodes for timing in collectives.timings} == {4}


def test_a_job_of_one_cpu_measures_two_ranks_on_its_node(testbed, windtunnel, tmp_path):
    ended = run_topology(testbed, windtunnel, tmp_path, "srun", "--nodes=1", "--ntasks=1", "--nodelist=n3")
    assert ended.code == 0, ended.stdout + ended.stderr
    assert read_artifact(tmp_path / "collectives.json", Collectives).hosts == ("n3", "n3")


def test_the_login_node_is_no_place_to_measure(testbed, windtunnel, tmp_path):
    ended = run_topology(testbed, windtunnel, tmp_path)
    assert ended.code == 2
    assert "inside a job" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_partition_is_refused_with_the_known_ones(testbed, windtunnel, tmp_path):
    ended = run_topology(testbed, windtunnel, tmp_path, partition="nowhere")
    assert ended.code == 2
    assert "'nowhere' does not exist" in ended.stderr
    assert "main" in ended.stderr


def test_the_cluster_is_drawn_and_checked_as_slurm_shows_it(testbed, windtunnel):
    shown = testbed.run(*windtunnel, "topology", "show")
    assert shown.stdout.startswith("spine\n├── leaf0  4 nodes: n[0,2,4,6]\n└── leaf1  4 nodes: n[1,3,5,7]\n")
    linted = testbed.run(*windtunnel, "topology", "lint")
    assert linted.stdout == "0 findings\n"


def test_addresses_that_one_srun_gathers_are_the_same_tree(testbed, windtunnel, tmp_path):
    words = "echo $SLURMD_NODENAME $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN"
    gathered = testbed.run("srun", "--nodes=8", "--ntasks-per-node=1", "sh", "-c", words)
    (tmp_path / "addresses").write_text(gathered.stdout)
    facts = json.loads(testbed.run(*windtunnel, "topology", "facts", str(tmp_path / "addresses")).stdout)
    assert facts["paths"] == {f"n{i}": ["spine", f"leaf{i % 2}"] for i in range(8)}
    assert (facts["nodes"], facts["levels"], facts["parents"]) == (8, 2, ["spine"])


def test_nodes_as_slurm_shows_them_are_read_in_every_form(testbed, windtunnel, tmp_path):
    for name, options in {"text": (), "line": ("-o",)}.items():
        (tmp_path / name).write_text(testbed.run("scontrol", "show", "node", *options).stdout)
        facts = json.loads(testbed.run(*windtunnel, "topology", "facts", str(tmp_path / name)).stdout)
        assert (facts["kind"], facts["nodes"], facts["gpus"]) == ("scontrol-node", 8, 32)
