import os

import pytest

from windtunnel.errors import ClusterError, CommandError
from windtunnel.slurm.scontrol import list_partitions, read_nodes, read_partition, read_switches

PROGRAM = """#!/bin/sh
case "$2" in
  partition) echo "PartitionName=debug Default=YES MaxTime=60:00 Nodes=n[0-1] State=UP"
             echo "PartitionName=gpu Default=NO MaxTime=UNLIMITED Nodes=n1 State=UP" ;;
  node) echo "NodeName=n0 CPUTot=2 RealMemory=100 State=IDLE"
        echo "NodeName=n1 CPUTot=4 RealMemory=100 State=IDLE" ;;
  topology) echo "$FAKE_TOPOLOGY_ERROR" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    program = tmp_path / "scontrol"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return monkeypatch


def test_an_unknown_partition_is_refused_with_the_known_ones(scontrol):
    with pytest.raises(ClusterError, match=r"'batch' does not exist.*debug, gpu; set cluster\.partition"):
        read_partition("batch")


def test_a_known_partition_is_read(scontrol):
    assert read_partition("gpu").nodes == ("n1",)
    assert list_partitions() == ("debug", "gpu")


def test_nodes_come_in_the_order_asked_for(scontrol):
    assert [node.cpus for node in read_nodes(["n1", "n0"])] == [4, 2]
    assert read_nodes([]) == ()


def test_a_node_that_slurm_does_not_know_is_named(scontrol):
    with pytest.raises(ClusterError, match="knows no node n9"):
        read_nodes(["n0", "n9"])


def test_a_cluster_without_topology_has_no_switches(scontrol):
    scontrol.setenv("FAKE_TOPOLOGY_ERROR", "scontrol: No topology information available")
    assert read_switches() == ()


def test_a_slurm_that_does_not_answer_is_no_empty_topology(scontrol):
    scontrol.setenv("FAKE_TOPOLOGY_ERROR", "slurm_load_topo: Unable to contact slurm controller")
    with pytest.raises(CommandError, match="Unable to contact"):
        read_switches()
