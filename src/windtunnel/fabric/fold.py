"""Axes that stay inside the nodes, and the smaller problem of placing what is left onto whole nodes. Pure."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from windtunnel.fabric.bounds import Floor, find_bound_s, find_floor
from windtunnel.fabric.congestion import Problem, axis_cost_s, build_problem, least_rank_load
from windtunnel.fabric.slots import Level, SlotTree
from windtunnel.fabric.traffic import Axis, Ints


@dataclass(frozen=True)
class Fold:
    """A problem whose slots are nodes; each of its ranks stands for a group of the inner axes."""

    whole: Problem
    outer: Problem
    inner: tuple[int, ...]
    """Indexes of the axes that fill a node."""
    inner_cost_s: float
    split_cost_s: float
    """Of the whole step at least, once a single group of an inner axis is on two nodes."""


def list_folds(problem: Problem) -> list[Fold]:
    """Each set of axes that fills a node; first the one whose splitting costs most."""
    per_node = set(problem.tree.sizes(1).tolist())
    if len(per_node) != 1 or per_node == {1}:
        return []
    wanted = per_node.pop()
    folds = [_fold(problem, inner) for inner in _list_inner(problem, wanted)]
    return sorted(folds, key=lambda fold: -fold.split_cost_s)


def bound_fold_s(fold: Fold) -> float:
    """Of all placements: those that keep the inner axes inside, and those that do not."""
    return min(fold.inner_cost_s + find_bound_s(fold.outer), fold.split_cost_s)


def unfold(fold: Fold, nodes: Ints) -> Ints:
    """Slots of all ranks from the nodes of the outer problem's."""
    radices = [axis.ranks for axis in fold.whole.axes]
    ranks = np.arange(fold.whole.tree.slots, dtype=np.int64)
    inside, outside = np.zeros_like(ranks), np.zeros_like(ranks)
    inside_stride = outside_stride = 1
    for index, radix in enumerate(radices):
        digit = ranks // math.prod(radices[:index]) % radix
        if index in fold.inner:
            inside, inside_stride = inside + digit * inside_stride, inside_stride * radix
        else:
            outside, outside_stride = outside + digit * outside_stride, outside_stride * radix
    return nodes[outside] * inside_stride + inside


def _list_inner(problem: Problem, wanted: int) -> Iterator[tuple[int, ...]]:
    wide = [index for index, axis in enumerate(problem.axes) if axis.ranks > 1]
    for count in range(1, len(wide) + 1):
        for inner in itertools.combinations(wide, count):
            if math.prod(problem.axes[index].ranks for index in inner) == wanted:
                yield inner


def _fold(problem: Problem, inner: tuple[int, ...]) -> Fold:
    tree, axes = problem.tree, problem.axes
    width = math.prod(axes[index].ranks for index in inner)
    node = replace(tree.levels[1], s_per_byte=max(tree.levels[0].s_per_byte, width * tree.levels[1].s_per_byte))
    levels = (node, *(replace(level, s_per_byte=level.s_per_byte * width) for level in tree.levels[2:]))
    above = tuple(vertices[::width] for vertices in tree.above[1:])
    small = SlotTree(tree.hosts[::width], above, levels)
    outer = build_problem(small, [axis for index, axis in enumerate(axes) if index not in inner])
    fold = Fold(problem, outer, inner, 0.0, 0.0)
    slots = unfold(fold, np.arange(small.slots, dtype=np.int64))
    cost_s = sum(axis_cost_s(tree, problem.flows[index], slots) for index in inner)
    return replace(fold, inner_cost_s=float(cost_s), split_cost_s=_split_cost_s(problem, inner))


def _split_cost_s(problem: Problem, inner: tuple[int, ...]) -> float:
    """At least one inner axis loads a node's uplink once; all others have their floors."""
    node, axes = problem.tree.levels[1], problem.axes
    floors = [find_floor(problem, index) for index in range(len(axes))]
    total = sum(floor.cost_s(axis) for floor, axis in zip(floors, axes, strict=True))
    least = min(
        Floor(
            max(floors[i].s_per_byte, _split_s_per_byte(axes[i], node)), max(floors[i].latency_s, node.latency_s)
        ).cost_s(axes[i])
        - floors[i].cost_s(axes[i])
        for i in inner
    )
    return total + least


def _split_s_per_byte(axis: Axis, node: Level) -> float:
    return max(node.s_per_byte, node.rank_s_per_byte * least_rank_load(axis))
