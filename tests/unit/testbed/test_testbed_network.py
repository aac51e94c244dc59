from dataclasses import replace
from pathlib import Path

from windtunnel.testbed.network import Batch, namespace_names, plan_network
from windtunnel.testbed.spec import ClusterSpec

SPEC = ClusterSpec(folder=Path("/tmp/tb"), user="root", machine="vm", nodes=4, leaves=2)


def lines_of(spec: ClusterSpec, namespace: str, tool: str) -> tuple[str, ...]:
    found = [batch for batch in plan_network(spec) if (batch.namespace, batch.tool) == (namespace, tool)]
    assert len(found) == 1
    return found[0].lines


def test_every_host_and_the_switches_have_a_namespace() -> None:
    assert namespace_names(SPEC) == ("fabric", "login", "n0", "n1", "n2", "n3")
    assert namespace_names(replace(SPEC, network=False)) == ()


def test_neighbouring_nodes_are_attached_to_different_leaves() -> None:
    lines = lines_of(SPEC, "fabric", "ip")
    masters = {line.split()[2]: line.split()[4] for line in lines if " master " in line}
    assert [masters[f"sw-n{index}"] for index in range(4)] == ["leaf0", "leaf1", "leaf0", "leaf1"]
    assert masters["sw-login"] == "spine"
    assert (masters["leaf1-up"], masters["spine-leaf1"]) == ("leaf1", "spine")


def test_both_directions_of_every_link_are_shaped() -> None:
    fabric = lines_of(SPEC, "fabric", "tc")
    rates = {line.split()[3]: line.split()[7] for line in fabric}
    assert {name: rate for name, rate in rates.items() if rate == "200mbit"}.keys() == {
        "leaf0-up",
        "spine-leaf0",
        "leaf1-up",
        "spine-leaf1",
    }
    assert rates["sw-n3"] == "1000mbit"
    assert "rate 1000mbit burst 1250000" in lines_of(SPEC, "n3", "tc")[0]
    assert "sw-login" not in rates


def test_rate_of_zero_leaves_links_unshaped() -> None:
    assert not [batch for batch in plan_network(replace(SPEC, node_mbit=0, leaf_mbit=0)) if batch.tool == "tc"]


def test_node_has_one_address_on_eth0() -> None:
    assert "addr add 10.77.1.3/16 dev eth0" in lines_of(SPEC, "n2", "ip")
    assert Batch("n2", "ip", lines_of(SPEC, "n2", "ip")) in plan_network(SPEC)
