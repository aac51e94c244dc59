"""The parsers against a corpus of real output, with what each file is known to say."""

import csv
import json
from pathlib import Path

import pytest

from windtunnel.gres import count_gpus
from windtunnel.slurm.scontrol import parse_nodes, parse_switches

CORPUS = Path(__file__).parents[3].parent / "shared" / "cases" / "topology"

pytestmark = pytest.mark.shared


def cases(prefix):
    if not CORPUS.is_dir():
        return []
    with (CORPUS / "INDEX.csv").open() as index:
        rows = [row for row in csv.DictReader(index) if row["file"].startswith(prefix)]
    return [pytest.param(row["file"], json.loads(row["expected"]), id=row["file"]) for row in rows]


@pytest.mark.parametrize(("file", "expected"), cases("slurm_show__"))
def test_switches_of_the_corpus_are_as_known(file, expected):
    switches = parse_switches((CORPUS / file).read_text())
    below = {name for switch in switches for name in switch.switches}
    found = {
        "switches": len(switches),
        "blocks": len(switches),
        "nodes": len({node for switch in switches for node in switch.nodes}),
        "max_level": max(switch.level for switch in switches),
        "leaves": sum(switch.level == 0 for switch in switches),
        "roots": sum(switch.name not in below for switch in switches),
    }
    known = found.keys() & expected.keys()
    assert known
    assert {name: found[name] for name in known} == {name: expected[name] for name in known}


@pytest.mark.parametrize(("file", "expected"), cases("scontrol_node__"))
def test_nodes_of_the_corpus_are_as_known(file, expected):
    nodes = parse_nodes((CORPUS / file).read_text())
    assert len(nodes) == expected["nodes"]
    assert nodes[0].gpus == expected["gpus"]
    assert nodes[0].state == expected["state"]


def test_gres_strings_of_the_corpus_are_counted_as_known():
    lines = (CORPUS / "gres__strings.tsv").read_text().splitlines()
    pairs = [line.split("\t") for line in lines]
    wrong = {gres: count_gpus(gres) for gres, meaning in pairs if count_gpus(gres) != json.loads(meaning)["gpu"]}
    assert not wrong
    assert len(pairs) == 26
