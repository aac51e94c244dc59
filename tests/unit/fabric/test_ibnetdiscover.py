from fabric_samples import IBNET
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.ibnetdiscover import parse_ibnetdiscover


def test_levels_follow_from_the_cables():
    topology = parse_ibnetdiscover(IBNET)
    levels = {switch.name.split(";")[1].split(":")[0]: switch.level for switch in topology.switches}
    assert levels == {"leaf1": 0, "leaf2": 0, "spine1": 1}
    facts = collect_facts(topology)
    assert (facts["switches"], facts["nodes"], facts["roots"], facts["levels"]) == (3, 3, 1, 2)
    assert facts["links"] == 6


def test_hosts_are_named_by_their_adapters_and_aggregation_is_no_host():
    hosts = {host.name: host.path for host in parse_ibnetdiscover(IBNET).hosts}
    assert hosts.keys() == {"node1", "node2", "node3"}
    assert hosts["node3"][-1] == "MF0;leaf2:MSB7700/U1"


def test_switches_of_one_description_are_told_by_their_guid():
    same = IBNET.replace("leaf1:", "x:").replace("leaf2:", "x:")
    names = [switch.name for switch in parse_ibnetdiscover(same).switches]
    assert names[:2] == ["S-0000e41d2d0300a1", "S-0000e41d2d0300a2"]


def test_an_adapter_that_does_not_name_its_host_is_a_finding():
    topology = parse_ibnetdiscover(IBNET.replace('"node3 mlx5_0"', '"MT4123 ConnectX6 Technologies"'))
    assert "H-0000000000000003" in {host.name for host in topology.hosts}
    assert topology.find("unnamed-host")


def test_adapters_that_say_the_same_are_of_hosts_without_a_name():
    topology = parse_ibnetdiscover(
        IBNET.replace("node3 mlx5_0", "node1 mlx5_0").replace("node2 HCA-1", "localhost HCA-1")
    )
    assert {host.name for host in topology.hosts} == {f"H-000000000000000{i}" for i in (1, 2, 3)}


def test_a_cut_file_says_what_it_does_not_describe():
    topology = parse_ibnetdiscover(IBNET[: IBNET.index('Switch\t36 "S-0000e41d2d0300b1"')])
    assert "S-0000e41d2d0300b1" in topology.find("undescribed")[-1].text
    assert [switch.level for switch in topology.switches] == [0, 0, 1]


def test_cables_between_leaves_are_no_tree():
    ring = IBNET.replace('"S-0000e41d2d0300b1"[1]', '"S-0000e41d2d0300a2"[9]', 1)
    assert parse_ibnetdiscover(ring).find("not-a-tree")
