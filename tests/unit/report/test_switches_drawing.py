from windtunnel.records.cluster import Node, Topology
from windtunnel.report.facts import render_switches


def partition(*paths):
    nodes = tuple(Node(f"n{i}", 8, 1024, 0, "IDLE", path) for i, path in enumerate(paths))
    return Topology("main<>", "slurm", nodes, None, "f" * 16)


def test_a_partitions_tree_is_drawn_with_its_title_escaped():
    drawn = render_switches(partition(("root", "s0"), ("root", "s0"), ("root", "s1")))
    assert drawn.startswith("<figure><figcaption>Switches of partition main&lt;&gt;")
    assert "2 nodes: n[0-1]" in drawn
    assert drawn.count("<text") == 3


def test_nodes_that_tell_no_switch_are_not_drawn():
    assert render_switches(partition((), ())) == ""


def test_a_node_of_unknown_place_is_said():
    assert "unknown place" in render_switches(partition(("root", "s0"), ()))
