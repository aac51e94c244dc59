"""Exposed seconds of a step's communication for ranks at given places: the model that the solver minimizes. Pure.

Per axis all groups send at once. The axis takes as long as the busiest uplink needs for what goes through it, in the
worse direction, and a latency a message of the farthest level. Over two interleaved leaves this tells the order of
ranks within 7 % of what Gloo's rings take there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.traffic import Axis, Edges, Ints, group_ranks, join_ranks, require_axes


@dataclass(frozen=True)
class Flow:
    """An axis with the ranks that it joins."""

    axis: Axis
    groups: Ints
    edges: Edges


@dataclass(frozen=True)
class Problem:
    """What is to be placed, and where it may go. As many ranks as slots."""

    tree: SlotTree
    flows: tuple[Flow, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the layout, the fastest first."""
        return tuple(flow.axis for flow in self.flows)


def build_problem(tree: SlotTree, axes: Sequence[Axis]) -> Problem:
    """Raises LayoutError where the axes do not make up as many ranks as there are slots."""
    require_axes(axes, tree.slots)
    groups = [group_ranks(axes, index) for index in range(len(axes))]
    return Problem(
        tree,
        tuple(Flow(axis, each, join_ranks(each, axis.pattern)) for axis, each in zip(axes, groups, strict=True)),
    )


def total_cost_s(problem: Problem, slots: Ints) -> float:
    """Exposed seconds where rank r is at `slots[r]`."""
    return float(sum(axis_cost_s(problem.tree, flow, slots) for flow in problem.flows))


def axis_cost_s(tree: SlotTree, flow: Flow, slots: Ints) -> float:
    """Exposed seconds of one axis."""
    slowest, latency_s = 0.0, 0.0
    for vertices, level in zip(tree.above, tree.levels, strict=True):
        load = find_load(flow, vertices[slots])
        if load == 0:
            break
        slowest = max(slowest, load * level.s_per_byte, level.rank_s_per_byte * find_rank_load(flow, vertices[slots]))
        latency_s = max(latency_s, level.latency_s)
    return flow.axis.exposed * (flow.axis.messages * latency_s + flow.axis.bytes * slowest)


def find_load(flow: Flow, places: Ints) -> float:
    """Multiples of the axis's bytes through the busiest vertex, in its worse direction; `places` has each rank's."""
    if flow.axis.pattern == "hierarchical":
        return _count_groups(flow.groups, places)
    edges = flow.edges
    out, into = places[edges.sources], places[edges.targets]
    crossing = out != into
    if not crossing.any():
        return 0.0
    weights = edges.weights[crossing]
    return float(max(np.bincount(out[crossing], weights).max(), np.bincount(into[crossing], weights).max()))


def find_rank_load(flow: Flow, places: Ints) -> float:
    """Share of the axis's bytes that some rank sends to other places than its own."""
    if flow.axis.pattern != "all-to-all":
        return 1.0
    edges = flow.edges
    crossing = places[edges.sources] != places[edges.targets]
    return float(np.bincount(edges.sources[crossing], edges.weights[crossing]).max())


def least_rank_load(axis: Axis) -> float:
    """The same of any axis with a group at several places: what no placement is below."""
    return 1 / max(1, axis.ranks - 1) if axis.pattern == "all-to-all" else 1.0


def _count_groups(groups: Ints, places: Ints) -> float:
    """Groups that are partly below a vertex, at the vertex with the most."""
    below = np.sort(places[groups], axis=1)
    spread = below[below[:, 0] != below[:, -1]]
    if not len(spread):
        return 0.0
    first = np.concatenate([np.ones((len(spread), 1), dtype=bool), spread[:, 1:] != spread[:, :-1]], axis=1)
    return float(np.bincount(spread[first]).max())
