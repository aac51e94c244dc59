from itertools import permutations

import pytest

from windtunnel.fabric.placement import order_hosts, ring_crossings
from windtunnel.records.cluster import Node, Topology


def topology(paths):
    nodes = tuple(Node(name, 1, 1, 0, "IDLE", tuple(path.split("."))) for name, path in paths.items())
    return Topology("p", "slurm", nodes, None, "f")


INTERLEAVED = topology({f"n{i}": f"spine.leaf{i % 2}" for i in range(8)})
DEEP = topology({f"n{i}": f"root.p{i % 2}.s{i % 4}" for i in range(8)})
HOSTS = tuple(f"n{i}" for i in range(8))


def test_interleaved_leaves_are_walked_one_after_the_other():
    assert order_hosts(HOSTS, INTERLEAVED, "leaf") == ("n0", "n2", "n4", "n6", "n1", "n3", "n5", "n7")


def test_a_ring_crosses_the_spine_twice_instead_of_eight_times():
    assert ring_crossings(HOSTS, INTERLEAVED) == 8
    assert ring_crossings(order_hosts(HOSTS, INTERLEAVED, "leaf"), INTERLEAVED) == 2


def test_leaves_below_one_parent_are_neighbours():
    ordered = order_hosts(HOSTS, DEEP, "leaf")
    assert ordered == ("n0", "n4", "n2", "n6", "n1", "n5", "n3", "n7")


@pytest.mark.parametrize("place", [INTERLEAVED, DEEP])
def test_no_order_of_six_hosts_crosses_less(place):
    hosts = HOSTS[:6]
    least = min(ring_crossings((hosts[0], *rest), place) for rest in permutations(hosts[1:]))
    assert ring_crossings(order_hosts(hosts, place, "leaf"), place) == least


def test_slurm_policy_keeps_the_order():
    assert order_hosts(("n3", "n1", "n2"), INTERLEAVED, "slurm") == ("n3", "n1", "n2")


def test_the_first_host_stays_rank_zero():
    assert order_hosts(("n3", "n2", "n1", "n0"), INTERLEAVED, "leaf") == ("n3", "n1", "n2", "n0")


def test_hosts_of_unknown_place_keep_their_order_and_have_no_count():
    bare = Topology("p", "slurm", (), None, "f")
    assert order_hosts(("b", "a"), bare, "leaf") == ("b", "a")
    assert ring_crossings(("b", "a"), bare) is None
    assert set(order_hosts(("x", *HOSTS), INTERLEAVED, "leaf")) == {"x", *HOSTS}


def test_one_host_crosses_nothing():
    assert ring_crossings(("n0",), INTERLEAVED) == ring_crossings((), INTERLEAVED) == 0
