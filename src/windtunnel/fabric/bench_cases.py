"""What a benchmark of the fabric measures: which operations among which ranks, level by level of the tree. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windtunnel.errors import SettingsError
from windtunnel.fabric.graph import count_levels_left
from windtunnel.records.bench import BenchCase

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
OPERATIONS = (*COLLECTIVES, "p2p")
_PEERS = 4
"""Hosts of a level that each host is tried with, so that a slow one differs from its peers by more than chance."""
_GRAIN_BYTES = 8


@dataclass(frozen=True)
class BenchPlan:
    """What is asked for; sizes in bytes."""

    operations: tuple[str, ...] = OPERATIONS
    sizes_bytes: tuple[int, ...] = ()
    pair_bytes: int = 1 << 20
    """Size at which pairs of hosts are held against each other."""
    ranks_per_host: int = 1


def plan_cases(hosts: Sequence[str], paths: Mapping[str, Sequence[str]], plan: BenchPlan) -> tuple[BenchCase, ...]:
    """Per level the largest group below one switch, every operation over it, and pairs of hosts.

    Rank r of the measurement runs on `hosts[r // ranks_per_host]`. Raises SettingsError for an unknown operation.
    """
    unknown = [name for name in plan.operations if name not in OPERATIONS]
    if unknown:
        raise SettingsError(f"operation {unknown[0]!r} is not one of {', '.join(OPERATIONS)}")
    places = [tuple(paths.get(host, ())) or (f"?{host}",) for host in hosts]
    groups = _list_groups(places, plan.ranks_per_host)
    cases = [
        _make_case(hosts, plan, level=level, operation=operation, ranks=ranks)
        for level, ranks in groups.items()
        for operation in plan.operations
        if operation != "p2p"
    ]
    if "p2p" in plan.operations:
        cases += _list_pairs(hosts, places, plan)
    return tuple(cases)


def busbw_factor(operation: str, ranks: int) -> float:
    """busbw / algbw. Source: nccl-tests, doc/PERFORMANCE.md."""
    if operation in ("broadcast", "p2p"):
        return 1.0
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


def fit_size(size_bytes: int, ranks: int) -> int:
    """The size, so rounded that every rank has an equal part of whole elements."""
    grain = _GRAIN_BYTES * ranks
    return max(grain, size_bytes // grain * grain)


def name_level(height: int, tallest: int) -> str:
    """Of switches so far above the leaves: leaf, pod (or its height where there are several), across."""
    if height == 0:
        return "leaf"
    if height == tallest:
        return "across"
    return "pod" if tallest == 2 else f"level{height}"


def _list_groups(places: Sequence[tuple[str, ...]], ranks_per_host: int) -> dict[str, tuple[int, ...]]:
    """By level, one rank on each host of the switch with the most; two or more on a host first."""
    found: dict[str, tuple[int, ...]] = {}
    if ranks_per_host > 1:
        found["node"] = tuple(range(ranks_per_host))
    tallest = max(map(len, places), default=1) - 1
    for height in range(tallest + 1):
        below: dict[tuple[str, ...], list[int]] = {}
        for index, place in enumerate(places):
            below.setdefault(place[: max(1, len(place) - height)] if height < tallest else (), []).append(index)
        largest = max(below.values(), key=len)
        children = {places[index][: len(places[index]) - height + 1] for index in largest} if height else set(largest)
        if len(children) > 1:
            found[name_level(height, tallest)] = tuple(index * ranks_per_host for index in largest)
    return found


def _list_pairs(hosts: Sequence[str], places: Sequence[tuple[str, ...]], plan: BenchPlan) -> list[BenchCase]:
    """A few peers of each host and level at one size; of each level one pair at all sizes."""
    tallest = max(map(len, places), default=1) - 1
    tried: dict[tuple[int, int], int] = {}
    cases: list[BenchCase] = []
    if plan.ranks_per_host > 1:
        cases.append(_make_case(hosts, plan, level="node", operation="p2p", ranks=(0, 1)))
    curved: set[int] = set()
    n = len(hosts)
    for step, one in itertools.product(range(1, n), range(n)):
        other = (one + step) % n
        height = min(tallest, count_levels_left(places[one], places[other]))
        if one > other or min(tried.get((one, height), 0), tried.get((other, height), 0)) >= _PEERS:
            continue
        for host in (one, other):
            tried[host, height] = tried.get((host, height), 0) + 1
        sizes = () if height in curved else plan.sizes_bytes
        curved.add(height)
        ranks = (one * plan.ranks_per_host, other * plan.ranks_per_host)
        case = _make_case(hosts, plan, level=name_level(height, tallest), operation="p2p", ranks=ranks)
        wanted = sorted({plan.pair_bytes, *sizes})
        cases.append(BenchCase(case.level, "p2p", ranks, case.hosts, tuple(fit_size(size, 2) for size in wanted)))
    return cases


def _make_case(
    hosts: Sequence[str], plan: BenchPlan, *, level: str, operation: str, ranks: tuple[int, ...]
) -> BenchCase:
    sizes = tuple(sorted({fit_size(size, len(ranks)) for size in plan.sizes_bytes}))
    return BenchCase(level, operation, ranks, tuple(hosts[rank // plan.ranks_per_host] for rank in ranks), sizes)
