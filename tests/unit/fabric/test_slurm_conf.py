import pytest

from fabric_samples import CONF_BLOCKS, CONF_TREE
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.slurm_conf import parse_conf


def facts_of(text):
    return collect_facts(parse_conf(text))


def only_error(text):
    (error,) = parse_conf(text).errors
    return error


def test_comments_continued_lines_quotes_and_any_case_are_read():
    topology = parse_conf(CONF_TREE)
    assert [(s.name, s.level, s.link_speed) for s in topology.switches] == [
        ("root", 2, None),
        ("p0", 1, 400),
        ("p1", 1, None),
        ("s0", 0, 200),
        ("s1", 0, None),
        ("s2", 0, None),
    ]
    assert topology.switches[4].nodes == ("n05", "n06", "n07", "n08")
    assert topology.switches[5].nodes == ("gpu-1-ib", "gpu-2-ib")


def test_levels_follow_the_longest_way_down():
    facts = facts_of("SwitchName=r Switches=a,b\nSwitchName=a Switches=b\nSwitchName=b Nodes=n1")
    assert (facts["levels"], facts["roots"], facts["multi_parent"]) == (3, 1, True)


def test_blocks_count_those_that_are_commented_out():
    facts = facts_of(CONF_BLOCKS)
    assert (facts["blocks"], facts["nodes_per_block"], facts["commented_blocks"]) == (2, [4, 4], 1)
    assert (facts["block_sizes"], facts["usable"]) == ([4, 8], True)


def test_without_block_sizes_these_are_unknown():
    facts = facts_of("BlockName=b Nodes=n[1-4]")
    assert facts["block_sizes"] is None
    assert facts["levels"] is None


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SwitchName=a Nodes=n1 Colour=red", "unknown-key", (1, 30)),
        ("\nNodes=n1", "unknown-key", (2, 1)),
        ("SwitchName=a Nodes=n1 oops", "no-pair", (1, 23)),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "twice", (2, 1)),
        ("SwitchName=a Switches=b", "missing-child", (1, 1)),
        ("SwitchName=a Nodes=n1 LinkSpeed=fast", "link-speed", (1, 33)),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Switches=a", "both", (2, 1)),
        ("BlockName=a Nodes=n1\nBlockSizes=4,x", "block-sizes", (2, 1)),
        ("BlockName=a Nodes=n1\n\nBlockName=a Nodes=n2", "twice", (3, 1)),
        ("SwitchName=a Nodes=n1\nBlockName=a Nodes=n2", "mixed", (2, 1)),
        ("BlockName=a Nodes=n[1-12]\nBlockSizes=4,12", "block-sizes", (2, 1)),
    ],
)
def test_a_mistake_is_one_error_with_its_place(text, code, place):
    error = only_error(text)
    assert (error.code, (error.line, error.column)) == (code, place)


def test_a_cycle_names_the_switch_that_all_cycles_share():
    text = (
        "SwitchName=a Switches=hub\nSwitchName=b Switches=hub\nSwitchName=hub Switches=a,b,l\nSwitchName=l Nodes=n1"
    )
    facts = facts_of(text)
    assert facts["reason"] == "cycle through hub"
    assert facts["slurm_22_05_8"] == "fatal: Switch configuration is not a tree"
    assert (facts["levels"], facts["usable"]) == (None, False)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (
            "SwitchName=a\nSwitchName=b Nodes=n1\nSwitchName=b Nodes=n2",
            "error: switch a has neither child switches nor nodes",
        ),
        ("SwitchName=b Nodes=n1\nSwitchName=b Nodes=n2", "fatal: Switch (b) has already been defined"),
        ("SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1", "fatal: Switch configuration a has invalid child (c)"),
        ("SwitchName=a Switches=b,d,c\nSwitchName=b Nodes=n1", "fatal: Switch configuration a has invalid child (c)"),
        ("SwitchName=a Switches=a\nSwitchName=b Nodes=n1", "fatal: Switch configuration a has invalid child (a)"),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Switches=a",
            "error: switch b has both child switches and nodes",
        ),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "fatal: Switch configuration is not a tree"),
        ("SwitchName=a Nodes=n1 Colour=red", "fatal: something wrong with opening/reading"),
        ("SwitchName=a Switches=b\nSwitchName=b Nodes=n1", None),
    ],
)
def test_what_slurm_would_say_is_its_first_complaint(text, verdict):
    assert facts_of(text)["slurm_22_05_8"] == verdict


def test_a_list_cut_short_leaves_the_nodes_unknown():
    topology = parse_conf("SwitchName=a Nodes=n[1-4\nSwitchName=b Nodes=n5")
    facts = collect_facts(topology)
    assert topology.find("unreadable-list")[0].column == 20
    assert (facts["nodes"], facts["nodes_per_leaf"]) == (None, None)


def test_all_stands_for_nodes_that_the_file_does_not_name():
    facts = facts_of("SwitchName=a Nodes=ALL")
    assert (facts["nodes"], facts["malformed"]) == (None, False)


def test_a_size_that_no_blocks_fill_is_a_warning_only():
    topology = parse_conf("BlockName=a Nodes=n[1-4]\nBlockSizes=4,8")
    assert not topology.errors
    assert "can never be full" in topology.find("unfillable-size")[0].text


def test_a_list_of_a_billion_hosts_is_refused_at_once():
    assert parse_conf("SwitchName=a Nodes=n[1-999999999]").find("unreadable-list")
