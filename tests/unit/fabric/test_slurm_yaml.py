import pytest

from fabric_samples import YAML_TREE
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.slurm_yaml import parse_yaml

TREE = "- topology: t\n  tree:\n    switches:\n"


def test_the_clusters_default_is_read_among_several():
    topology = parse_yaml(YAML_TREE)
    facts = collect_facts(topology)
    assert (facts["plugin"], facts["root"], facts["nodes"], facts["records"]) == ("tree", "root", 4, 2)
    assert topology.find("several")


def test_a_single_mapping_stands_for_a_list():
    facts = collect_facts(parse_yaml("topology: t\ntree:\n  switches:\n    switch: s\n    nodes: n[1-3]\n"))
    assert (facts["switches"], facts["nodes"], facts["malformed"]) == (1, 3, False)


def test_blocks_and_their_sizes_are_read():
    text = "- topology: b\n  block:\n    block_sizes: [2, 4]\n    blocks:\n    - {block: x, nodes: 'n[1-2]'}\n"
    facts = collect_facts(parse_yaml(text))
    assert (facts["plugin"], facts["blocks"], facts["block_sizes"]) == ("block", 1, [2, 4])


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("just text", "not-a-list", (1, 1)),
        ("- topology: t\n  tree: [1]\n", "not-a-mapping", (2, 9)),
        ("- topology: t\n  tree:\n    switches: s1\n", "not-a-list", (3, 15)),
        ("- topology: t\n  tree:\n    switch: s1\n", "missing-key", (3, 5)),
        ("- topology: t\n  flat: false\n", "plugins", (1, 3)),
        ("- topology: t\n  flat: true\n  tree:\n    switches: [{switch: a, nodes: n1}]\n", "plugins", (1, 3)),
        ("- flat: true\n", "no-name", (1, 3)),
        ("- topology: t\n  flat: true\n  colour: red\n", "unknown-key", (3, 11)),
        (TREE + "    - switch: r\n      children: s[1-2]\n    - {switch: s1, nodes: n1}\n", "missing-child", (4, 1)),
        ("a: [1\nb: 2\n", "yaml", (2, 2)),
    ],
)
def test_a_mistake_is_an_error_with_its_place(text, code, place):
    error = parse_yaml(text).errors[0]
    assert (error.code, (error.line, error.column)) == (code, place)


def test_a_plugin_that_is_not_read_says_so():
    topology = parse_yaml("- topology: r\n  ring:\n    rings:\n    - {ring: a, nodes: n1}\n")
    assert (topology.plugin, topology.errors) == ("ring", ())
    assert topology.find("not-read")


def test_nesting_without_end_is_one_error():
    assert parse_yaml("[" * 20000).errors
