"""What no placement can beat: a lower bound of the exposed cost from how many ranks each switch holds. Pure.

Let a vertex hold m of the ranks, and look at two axes alone, rows and columns of a grid. If it touches r rows and c
columns then r c >= m. A row of which it holds a part sends at least once through its uplink. In a pipeline's chain
the ends send one way only; but with r rows touched, fewer than a column has, the busier direction carries at least
m / r: runs that reach the first row are at most a long and those that reach the last at most b, a + b <= r, so the m
ranks need as many runs. A row that is held whole sends nothing, which needs all columns touched.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.fabric.congestion import Problem, least_rank_load
from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.traffic import Axis


@dataclass(frozen=True)
class Floor:
    """The least of one axis alone: seconds a byte of its busiest uplink, and its latency."""

    s_per_byte: float
    latency_s: float

    def cost_s(self, axis: Axis, s_per_byte: float = 0.0) -> float:
        """Exposed seconds where some uplink needs as much a byte."""
        return axis.exposed * (axis.messages * self.latency_s + axis.bytes * max(self.s_per_byte, s_per_byte))


def find_bound_s(problem: Problem) -> float:
    """Exposed seconds below which no order of the ranks is."""
    floors = [find_floor(problem, index) for index in range(len(problem.axes))]
    total = sum(floor.cost_s(axis) for floor, axis in zip(floors, problem.axes, strict=True))
    wide = [index for index, axis in enumerate(problem.axes) if axis.ranks > 1]
    for one, other in itertools.combinations(wide, 2):
        alone = floors[one].cost_s(problem.axes[one]) + floors[other].cost_s(problem.axes[other])
        pair = _bound_pair_s(problem, (one, other), floors)
        total = max(total, sum(f.cost_s(a) for f, a in zip(floors, problem.axes, strict=True)) - alone + pair)
    return float(total)


def find_floor(problem: Problem, index: int) -> Floor:
    """Of one axis, whatever the others do: some of its groups do not fit below one vertex."""
    axis = problem.axes[index]
    groups = len(problem.flows[index].groups)
    floor = Floor(0.0, 0.0)
    for level, cost in enumerate(problem.tree.levels):
        sizes = problem.tree.sizes(level)
        if axis.ranks == 1 or int((sizes // axis.ranks).sum()) >= groups:
            break
        s_per_byte = max(cost.s_per_byte, cost.rank_s_per_byte * least_rank_load(axis))
        floor = Floor(max(floor.s_per_byte, s_per_byte), max(floor.latency_s, cost.latency_s))
    return floor


def list_loads(m: int, rows: Axis, columns: Axis, *, exact: bool = True) -> Iterator[tuple[int, int]]:
    """Pairs of loads, of the rows' axis and of the columns', one of which m ranks of a vertex reach at least.

    A row is a group of `rows`, and there are as many as a group of `columns` has ranks. Not `exact`: m or more ranks.
    """
    most = m if exact else rows.ranks * columns.ranks
    for r in range(1, min(most, columns.ranks) + 1):
        for c in range(math.ceil(m / r), min(most, rows.ranks) + 1):
            yield _load(m, (r, c), rows, exact), _load(m, (c, r), columns, exact)


def _load(m: int, touched: tuple[int, int], axis: Axis, exact: bool) -> int:
    """Load of an axis of which so many groups are touched, at so many of their positions."""
    lines, across = touched
    if across < axis.ranks:
        return math.ceil(m / across) if axis.pattern == "chain" else lines
    if not exact:
        return 0
    partial = max(lines - m // axis.ranks, int(m % axis.ranks != 0))
    return math.ceil(partial / 2) if axis.pattern == "chain" else partial


def _bound_pair_s(problem: Problem, pair: tuple[int, int], floors: Sequence[Floor]) -> float:
    """Of two axes together: the worst vertex. Of the slices along the other axes one holds its share of ranks."""
    one, other = (problem.axes[index] for index in pair)
    slices = problem.tree.slots // (one.ranks * other.ranks)
    worst = 0.0
    for m, s_per_byte in _list_vertices(problem.tree):
        share = math.ceil(m / slices)
        costs = (
            floors[pair[0]].cost_s(one, a * s_per_byte) + floors[pair[1]].cost_s(other, b * s_per_byte)
            for a, b in list_loads(share, one, other, exact=slices == 1)
        )
        worst = max(worst, min(costs, default=0.0))
    return worst


def _list_vertices(tree: SlotTree) -> set[tuple[int, float]]:
    """Ranks below a vertex and seconds a byte of its uplink, each kind once; not where it holds all."""
    return {
        (int(m), level.s_per_byte)
        for index, level in enumerate(tree.levels)
        for m in np.unique(tree.sizes(index))
        if m < tree.slots
    }
