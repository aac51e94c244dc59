"""Which granted host gets which ranks: an order of hosts such that a ring over them crosses few switches. Pure."""

from collections.abc import Sequence
from typing import Literal

from windtunnel.fabric.graph import count_levels_left
from windtunnel.records.cluster import Topology

Policy = Literal["leaf", "slurm"]


def order_hosts(hosts: Sequence[str], topology: Topology, policy: Policy) -> tuple[str, ...]:
    """`hosts` in the order of their ranks.

    `leaf` walks the tree depth first, so that each switch's hosts are neighbours: of all orders, a ring
    then leaves every switch the fewest times. Groups come in the order of their first host, which so
    stays rank 0. A host of unknown place is a group of its own. `slurm` keeps the order.
    """
    if policy == "slurm":
        return tuple(hosts)
    paths = _paths(topology)
    first_at: dict[tuple[str, ...], int] = {}
    for index, host in enumerate(hosts):
        for prefix in _prefixes(paths.get(host, ())):
            first_at.setdefault(prefix, index)
    ranked = sorted(
        range(len(hosts)),
        key=lambda index: (*(first_at[prefix] for prefix in _prefixes(paths.get(hosts[index], ()))), index),
    )
    return tuple(hosts[index] for index in ranked)


def ring_crossings(hosts: Sequence[str], topology: Topology) -> int | None:
    """Levels of switches that the messages of a ring over `hosts` climb, summed over neighbours.

    On two leaves below one spine this is the number of neighbours on unlike leaves. None when the
    place of one of several hosts is unknown.
    """
    if len(set(hosts)) < 2:
        return 0
    paths = _paths(topology)
    ring = [paths.get(host, ()) for host in hosts]
    if not all(ring):
        return None
    return sum(count_levels_left(path, ring[(index + 1) % len(ring)]) for index, path in enumerate(ring))


def _paths(topology: Topology) -> dict[str, tuple[str, ...]]:
    return {node.name: node.switches for node in topology.nodes}


def _prefixes(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [path[: depth + 1] for depth in range(len(path))]
