import pytest

from fabric_samples import GRES, SAMPLES
from windtunnel.errors import InputFileError
from windtunnel.fabric.detect import parse_topology

KINDS = {
    "topology.conf": "topology.conf",
    "blocks.conf": "topology.conf",
    "topology.yaml": "topology.yaml",
    "show_tree": "scontrol-topology",
    "show_blocks": "scontrol-topology",
    "addresses": "topology-address",
    "nodes": "scontrol-node",
    "nodes.json": "scontrol-node",
    "slurm.conf": "slurm.conf",
    "sinfo": "sinfo",
    "gres": "gres",
    "matrix": "nvidia-smi-topo",
    "p2p": "nvidia-smi-p2p",
    "list": "nvidia-smi-list",
    "hwloc.xml": "hwloc",
    "nccl.xml": "nccl-graph",
    "ibnetdiscover": "ibnetdiscover",
    "nccl.log": "nccl-tests",
    "osu.log": "osu",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_is_known_by_what_it_holds_not_by_its_name(name):
    assert parse_topology(SAMPLES[name]).kind == KINDS[name]
    assert parse_topology(SAMPLES[name].replace("\n", "\r\n")).kind == KINDS[name]


@pytest.mark.parametrize("text", ["", " \n", "hello world\n", "node01\nnode02\n", "<html></html>", "{}", "[]"])
def test_what_is_none_of_these_is_refused_with_its_name(text):
    with pytest.raises(InputFileError, match=r"^notes\.txt is "):
        parse_topology(text, "notes.txt")


def test_an_empty_yaml_is_malformed_rather_than_of_no_kind():
    assert parse_topology("just words\n", "topology.yaml").errors


def test_gres_strings_may_be_any_resource_with_a_count():
    assert len(parse_topology(GRES + "lscratch:100\n").lines) == 4
