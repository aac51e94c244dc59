from windtunnel.fabric.graph import count_levels_left, find_switch_paths
from windtunnel.records.cluster import Switch

TREE = (
    Switch("root", 2, (), ("p0", "p1")),
    Switch("s0", 0, ("n0", "n1"), ()),
    Switch("s1", 0, ("n2",), ()),
    Switch("s2", 0, ("n3",), ()),
    Switch("p0", 1, (), ("s0", "s1")),
    Switch("p1", 1, (), ("s2",)),
)


def test_a_path_runs_from_the_top_to_the_leaf_in_any_order_of_records():
    paths = find_switch_paths(TREE)
    assert paths == {
        "n0": ("root", "p0", "s0"),
        "n1": ("root", "p0", "s0"),
        "n2": ("root", "p0", "s1"),
        "n3": ("root", "p1", "s2"),
    }


def test_spines_that_share_a_leaf_are_one_level():
    switches = [Switch("s0", 0, ("n0",), ()), *(Switch(f"s{i}", 1, ("n0",), ("s0",)) for i in (4, 5, 6))]
    assert find_switch_paths(switches) == {"n0": ("s[4-6]", "s0")}


def test_a_loop_of_cables_ends():
    switches = [Switch("a", 1, (), ("b", "leaf")), Switch("b", 2, (), ("a",)), Switch("leaf", 0, ("n0",), ())]
    assert find_switch_paths(switches) == {"n0": ("b", "a", "leaf")}


def test_levels_left_count_what_is_climbed():
    assert count_levels_left(("root", "p0", "s0"), ("root", "p0", "s0")) == 0
    assert count_levels_left(("root", "p0", "s0"), ("root", "p0", "s1")) == 1
    assert count_levels_left(("root", "p0", "s0"), ("root", "p1", "s2")) == 2
    assert count_levels_left(("other",), ("root", "p1", "s2")) == 3
