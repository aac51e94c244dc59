import os
from dataclasses import replace

import pytest

from windtunnel.errors import ClusterError
from windtunnel.records.cluster import Node
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.topology.facts import hash_facts, read_facts

PROGRAM = """#!/bin/sh
case "$2" in
  partition) echo "PartitionName=debug Default=YES MaxTime=60:00 Nodes=n[0-1] State=UP"
             echo "PartitionName=empty Default=NO MaxTime=60:00 Nodes=(null) State=UP" ;;
  node) echo "NodeName=n0 CPUTot=2 Gres=gpu:4 RealMemory=100 State=IDLE"
        echo "NodeName=n1 CPUTot=2 Gres=gpu:4 RealMemory=100 State=MIXED" ;;
  topology) echo "SwitchName=leaf0 Level=0 Nodes=n0"
            echo "SwitchName=spine Level=1 Nodes=n0 Switches=leaf0" ;;
  config) echo "SelectType = select/cons_tres" ;;
esac
"""
NODE = Node("n0", 2, 100, 4, "IDLE", ("spine", "leaf0"))


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    program = tmp_path / "scontrol"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return ClusterSettings(kind="slurm", partition="debug")


def test_a_partition_has_its_nodes_with_their_switches(slurm):
    topology = read_facts(slurm)
    assert topology.nodes == (NODE, Node("n1", 2, 100, 4, "MIXED", ()))
    assert (topology.source, topology.max_time_min) == ("slurm", 60)


def test_an_unknown_partition_is_refused(slurm):
    with pytest.raises(ClusterError, match="'other' does not exist"):
        read_facts(slurm.model_copy(update={"partition": "other"}))


def test_a_partition_without_nodes_is_refused(slurm):
    with pytest.raises(ClusterError, match="has no nodes"):
        read_facts(slurm.model_copy(update={"partition": "empty"}))


def test_this_machine_is_a_partition_of_one_node():
    topology = read_facts(ClusterSettings(kind="local", partition="local"))
    (node,) = topology.nodes
    assert (topology.source, node.switches, node.cpus > 0) == ("local", (), True)


def test_a_fingerprint_changes_with_hardware_and_software_but_not_with_state():
    before = hash_facts((NODE,), {"SLURM_VERSION": "22.05.8"})
    assert hash_facts((replace(NODE, state="ALLOCATED"),), {"SLURM_VERSION": "22.05.8"}) == before
    assert hash_facts((replace(NODE, gpus=8),), {"SLURM_VERSION": "22.05.8"}) != before
    assert hash_facts((NODE,), {"SLURM_VERSION": "23.02.1"}) != before
