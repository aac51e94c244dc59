import pytest

from windtunnel.fabric.lint import lint_topology
from windtunnel.fabric.slurm_conf import parse_conf
from windtunnel.fabric.slurm_show import parse_show
from windtunnel.fabric.topology import Host

GOOD = "SwitchName=r Switches=s[0-1]\nSwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\n"


def codes(text, cluster=None, parse=parse_conf):
    return [finding.code for finding in lint_topology(parse(text), cluster)]


def cluster(*names, **weights):
    return [Host(name, weight=weights.get(name, 1)) for name in names]


def test_a_good_tree_has_no_findings():
    assert codes(GOOD, cluster("n1", "n2", "n3", "n4")) == []


def test_a_node_of_two_switches_is_found_with_both():
    (finding,) = lint_topology(parse_conf(GOOD.replace("n[3-4]", "n[2-4]")))
    assert (finding.code, "n2 in both s0 and s1" in finding.text) == ("in-two", True)


def test_a_node_of_no_switch_and_a_node_that_is_gone_are_found():
    findings = lint_topology(parse_conf(GOOD), cluster("n1", "n2", "n3", "n9"))
    assert {(finding.code, finding.text.split(":")[0]) for finding in findings} == {
        ("phantom", "s1"),
        ("in-none", "n9 in no switch or block"),
    }


def test_names_that_lost_their_beginning_are_found():
    (finding,) = lint_topology(parse_conf("SwitchName=s Nodes=cl-n[001-016],n[019-020]\n"))
    assert finding.code == "lost-prefix"
    assert "n[019-020]" in finding.text
    assert "'cl-n'" in finding.text


def test_short_names_that_the_cluster_has_lost_nothing():
    text = "SwitchName=s Nodes=gpu-n[1-2],n[1-2]\n"
    assert codes(text, cluster("gpu-n1", "gpu-n2", "n1", "n2")) == []
    assert codes(text, cluster("gpu-n1", "gpu-n2")) == ["lost-prefix", "phantom"]


def test_unlike_weights_below_one_switch_beat_the_topology():
    found = lint_topology(parse_conf(GOOD), cluster("n1", "n2", "n3", "n4", n2=10))
    assert [(finding.code, finding.text.split(":")[0]) for finding in found] == [("weights", "s0")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "cycle"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n", "forest"),
        ("BlockName=a Nodes=n[1-3]\nBlockSizes=4\n", "short-block"),
        ("BlockName=a Nodes=n[1-4]\nBlockSizes=4,8\n", "unfillable-size"),
        ("BlockName=a Nodes=n[1-4]\nBlockSizes=3,5\n", "block-sizes"),
        ("SwitchName=a Nodes=n[1-4\n", "unreadable-list"),
    ],
)
def test_what_administrators_get_wrong_is_found(text, code):
    assert code in codes(text)


def test_spines_that_share_all_leaves_are_no_forest():
    spines = "".join(f"SwitchName=r{i} Switches=s[0-1]\n" for i in range(3))
    assert codes(spines + GOOD.split("\n", 1)[1]) == []


def test_a_cycle_that_scontrol_shows_is_found():
    text = "SwitchName=a Level=1 Switches=b\nSwitchName=b Level=1 Switches=a\n"
    assert "cycle" in codes(text, parse=parse_show)


def test_errors_come_first():
    findings = lint_topology(parse_conf("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\nSwitchName=b Nodes=n2\n"))
    assert [finding.severity for finding in findings] == sorted(finding.severity for finding in findings)
    assert findings[0].code == "twice"
