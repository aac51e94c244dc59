"""Nodes and links that are slower than their peers by more than chance. Pure.

Pairs of hosts of one level are peers. A host is slow if the pairs that it is in are slower than the pairs of its
level that it is not in: a rank-sum test, exact, its error divided by the number of tests.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Pair = tuple[str, str]
_LEAST_FACTOR = 1.15
"""Slower by less matters to nobody."""
_LINK_FACTOR = 1.5
_LINK_DEVIATIONS = 8.0
_ERROR = 0.05


@dataclass(frozen=True)
class Slow:
    """A host, or a pair of hosts, of a level; so many times its peers' time."""

    hosts: tuple[str, ...]
    level: str
    times: float
    p_value: float | None = None
    """None for a link, of which there is one time only: it is so far out of its peers' spread instead."""


@dataclass(frozen=True)
class SlowParts:
    """What was found, and the hosts with too few peers for any answer."""

    found: tuple[Slow, ...]
    untested: tuple[str, ...]


def find_slow(times_s: Mapping[str, Mapping[Pair, float]]) -> SlowParts:
    """Slow hosts, the slowest first, then slow links between hosts that are not; times by level and pair."""
    found: list[Slow] = []
    untested: list[str] = []
    for level, pairs in times_s.items():
        hosts = sorted({host for pair in pairs for host in pair})
        untested += [host for host in hosts if not _can_tell(host, pairs, len(hosts))]
        slow_hosts = _find_slow_hosts(pairs, level)
        named = {host for slow in slow_hosts for host in slow.hosts}
        found += slow_hosts
        found += _find_slow_links({pair: time for pair, time in pairs.items() if not named & set(pair)}, level)
    return SlowParts(tuple(found), tuple(dict.fromkeys(untested)))


def rank_sum_p(slower: Sequence[float], others: Sequence[float]) -> float:
    """Chance that so many values rank so high among the others, were all alike; exact, ties count against it."""
    n, total = len(slower), len(slower) + len(others)
    ordered = sorted(others)
    # A value that ties with others stands below them.
    reached = sum(index + 1 + bisect_left(ordered, value) for index, value in enumerate(sorted(slower)))
    ways = [[0] * (total * (total + 1) // 2 + 1) for _ in range(n + 1)]
    ways[0][0] = 1
    for rank in range(1, total + 1):
        for count in range(min(n, rank), 0, -1):
            row, less = ways[count], ways[count - 1]
            for rank_sum in range(len(row) - 1, rank - 1, -1):
                row[rank_sum] += less[rank_sum - rank]
    return sum(ways[n][reached:]) / math.comb(total, n)


def _find_slow_hosts(pairs: Mapping[Pair, float], level: str) -> list[Slow]:
    """Each suspect against the pairs of those that are none, since two slow hosts would hide each other.

    Whom to leave out was chosen by the same times, so the error is divided by the number of suspects too.
    """
    hosts = sorted({host for pair in pairs for host in pair})
    suspects = {host for host in hosts if _factor(*_split(host, pairs)) >= _LEAST_FACTOR}
    allowed = _ERROR / (len(hosts) * max(1, len(suspects)))
    found = []
    for host in suspects:
        own, others = _split(host, {p: time for p, time in pairs.items() if not (suspects - {host}) & set(p)})
        times = _factor(own, others)
        if times >= _LEAST_FACTOR and (p_value := rank_sum_p(own, others)) <= allowed:
            found.append(Slow((host,), level, times, p_value))
    return sorted(found, key=lambda slow: (-slow.times, slow.hosts))


def _factor(own: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(own) / statistics.median(others) if own and others else 1.0


def _find_slow_links(pairs: Mapping[Pair, float], level: str) -> list[Slow]:
    if len(pairs) < 3:
        return []
    logs = {pair: math.log(time) for pair, time in pairs.items()}
    middle = statistics.median(logs.values())
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in logs.values())
    least = max(math.log(_LINK_FACTOR), _LINK_DEVIATIONS * deviation)
    return [Slow(pair, level, math.exp(value - middle)) for pair, value in logs.items() if value - middle > least]


def _can_tell(host: str, pairs: Mapping[Pair, float], hosts: int) -> bool:
    """Whether the most extreme outcome would be beyond chance."""
    own, others = _split(host, pairs)
    return 1 / math.comb(len(own) + len(others), len(own)) <= _ERROR / hosts


def _split(host: str, pairs: Mapping[Pair, float]) -> tuple[list[float], list[float]]:
    own = [time for pair, time in pairs.items() if host in pair]
    return own, [time for pair, time in pairs.items() if host not in pair]
