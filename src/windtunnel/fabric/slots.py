"""The places that ranks may take in a grant: a tree of ports, nodes and switches, and the uplinks' costs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.errors import ClusterError
from windtunnel.fabric.traffic import Ints


@dataclass(frozen=True)
class Level:
    """The uplinks of one level of the tree: 0 a rank's own port, 1 a node, 2 a leaf switch, and so on."""

    s_per_byte: float
    """Of all that goes through one uplink in one direction."""
    latency_s: float = 0.0
    """Of a message that climbs as far as these uplinks."""
    rank_s_per_byte: float = 0.0
    """Of what one rank alone sends so far, where its adapter is slower than the uplink that all share."""


@dataclass(frozen=True)
class SlotTree:
    """Places of ranks, host by host in the order given. `above[level][slot]` numbers the vertex at that level."""

    hosts: tuple[str, ...]
    """Of each slot."""
    above: tuple[Ints, ...]
    levels: tuple[Level, ...]

    @property
    def slots(self) -> int:
        """How many ranks fit."""
        return len(self.hosts)

    def sizes(self, level: int) -> Ints:
        """Slots below each vertex of a level."""
        return np.bincount(self.above[level])


def build_slots(
    hosts: Sequence[str], paths: Mapping[str, Sequence[str]], levels: Sequence[Level], *, ranks_per_host: int = 1
) -> SlotTree:
    """The slots of a grant. A host of unknown place is alone below the top; levels not given are like the last.

    Raises ClusterError for a host named twice, and for fewer levels than port and node.
    """
    if len(set(hosts)) != len(hosts) or len(levels) < 2 or ranks_per_host < 1:
        raise ClusterError(f"a grant needs each host once and costs of port and node: {list(hosts)}, {list(levels)}")
    depth = max((len(paths.get(host, ())) for host in hosts), default=0)
    names: list[list[tuple[str, ...]]] = [[] for _ in range(depth + 1)]
    for host in hosts:
        path = tuple(paths.get(host, ())) or (f"?{host}",)
        names[0].append((host,))
        for up in range(depth):
            # The top switch stands for the levels that a short path lacks.
            names[up + 1].append(path[: max(1, len(path) - up)])
    numbered = [np.repeat(_number(each), ranks_per_host) for each in names]
    ports = np.arange(len(hosts) * ranks_per_host, dtype=np.int64)
    known = [*levels, *[levels[-1]] * (depth + 2 - len(levels))][: depth + 2]
    slots = tuple(host for host in hosts for _ in range(ranks_per_host))
    return SlotTree(slots, (ports, *numbered), tuple(known))


def _number(names: Sequence[tuple[str, ...]]) -> Ints:
    numbers: dict[tuple[str, ...], int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
