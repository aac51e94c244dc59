"""The best placement of few ranks, by branch and bound. Pure.

Ranks are placed one after the other. Nodes of which nothing is taken yet and that are alike (below one switch, or
below switches that are alike and untouched too) are tried once. What is placed so far costs at least what it costs
now, so a branch ends where that, with the floors of the axes, is no better than the best known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from windtunnel.fabric.bounds import Floor, find_floor
from windtunnel.fabric.congestion import Flow, Problem, least_rank_load, total_cost_s
from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.traffic import Ints

_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Searched:
    """The best slots found, and whether every other placement was excluded."""

    slots: Ints
    cost_s: float
    finished: bool


@dataclass
class _Loads:
    """Multiples of an axis's bytes through each vertex, both ways, with what was placed so far."""

    flow: Flow
    floor: Floor
    neighbours: list[list[tuple[int, float, bool]]]
    """Of each rank: another, the weight, and whether the rank is the sender."""
    group: dict[int, int]
    load: dict[tuple[int, int, int], float] = field(default_factory=dict)
    """By level, vertex and direction."""
    held: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Hierarchical: vertices of a level that hold some of a group, each as often as it has ranks of it."""


def search_exactly(problem: Problem, start: Ints, *, stop_at_s: float, most_steps: int) -> Searched:
    """The best placement, or the best found in `most_steps`; it ends too where the cost reaches `stop_at_s`."""
    return _Search(problem, start, stop_at_s=stop_at_s, most_steps=most_steps).run()


class _Search:
    def __init__(self, problem: Problem, start: Ints, *, stop_at_s: float, most_steps: int) -> None:
        self.problem, self.stop_at_s, self.steps_left = problem, stop_at_s, most_steps
        self.above = [vertices.tolist() for vertices in problem.tree.above]
        self.shapes = list_shapes(problem.tree)
        self.touched = [[0] * (max(vertices) + 1) for vertices in self.above]
        self.axes = [_prepare(problem, index) for index in range(len(problem.flows)) if problem.axes[index].ranks > 1]
        self.slots: list[int] = []
        self.best, self.best_s = start, total_cost_s(problem, start)

    def run(self) -> Searched:
        finished = self._descend()
        return Searched(self.best, self.best_s, finished)

    def _descend(self) -> bool:
        """Place the next rank in each way; False where steps ran out."""
        if self._is_done():
            return True
        if len(self.slots) == self.problem.tree.slots:
            self.best = np.array(self.slots, dtype=np.int64)
            self.best_s = total_cost_s(self.problem, self.best)
            return True
        for slot in self._list_choices():
            if self.steps_left <= 0:
                return False
            self.steps_left -= 1
            undo = self._place(slot)
            finished = self._bound_s() >= self.best_s * (1 - _TOLERANCE) or self._descend()
            self._remove(slot, undo)
            if not finished:
                return False
        return True

    def _is_done(self) -> bool:
        return self.best_s <= self.stop_at_s * (1 + _TOLERANCE)

    def _list_choices(self) -> list[int]:
        """A free slot of each kind."""
        kinds: dict[tuple[object, ...], int] = {}
        for slot in range(self.problem.tree.slots):
            if not self.touched[0][slot]:
                kinds.setdefault(self._kind(slot), slot)
        return list(kinds.values())

    def _kind(self, slot: int) -> tuple[object, ...]:
        """Vertices from the top as far as they are touched, then the shapes of untouched ones."""
        kind: list[object] = []
        for level in range(len(self.above) - 1, -1, -1):
            vertex = self.above[level][slot]
            kind.append(vertex if self.touched[level][vertex] else ("like", self.shapes[level][vertex]))
        return tuple(kind)

    def _place(self, slot: int) -> list[tuple[_Loads, tuple[int, int, int], float]]:
        rank = len(self.slots)
        self.slots.append(slot)
        for level, vertices in enumerate(self.above):
            self.touched[level][vertices[slot]] += 1
        return [change for loads in self.axes for change in self._add(loads, rank)]

    def _remove(self, slot: int, undo: Sequence[tuple[_Loads, tuple[int, int, int], float]]) -> None:
        rank = len(self.slots) - 1
        for loads, key, weight in undo:
            loads.load[key] -= weight
        for loads in self.axes:
            if loads.flow.axis.pattern == "hierarchical":
                for level in range(len(self.above)):
                    loads.held[level, loads.group[rank]].pop()
        self.slots.pop()
        for level, vertices in enumerate(self.above):
            self.touched[level][vertices[slot]] -= 1

    def _add(self, loads: _Loads, rank: int) -> list[tuple[_Loads, tuple[int, int, int], float]]:
        hierarchical = loads.flow.axis.pattern == "hierarchical"
        changes = self._add_member(loads, rank) if hierarchical else self._add_edges(loads, rank)
        for key, weight in changes:
            loads.load[key] = loads.load.get(key, 0.0) + weight
        return [(loads, key, weight) for key, weight in changes]

    def _add_edges(self, loads: _Loads, rank: int) -> list[tuple[tuple[int, int, int], float]]:
        changes = []
        for other, weight, sends in loads.neighbours[rank]:
            if other >= rank:
                continue
            for level, vertices in enumerate(self.above):
                mine, its = vertices[self.slots[rank]], vertices[self.slots[other]]
                if mine == its:
                    break
                changes += [((level, mine, int(sends)), weight), ((level, its, int(not sends)), weight)]
        return changes

    def _add_member(self, loads: _Loads, rank: int) -> list[tuple[tuple[int, int, int], float]]:
        changes = []
        for level, vertices in enumerate(self.above):
            vertex = vertices[self.slots[rank]]
            held = loads.held.setdefault((level, loads.group[rank]), [])
            if held and vertex not in held:
                if len(set(held)) == 1:
                    changes.append(((level, held[0], 0), 1.0))
                changes.append(((level, vertex, 0), 1.0))
            held.append(vertex)
        return changes

    def _bound_s(self) -> float:
        """Of what is placed, and of the floors."""
        total = 0.0
        for loads in self.axes:
            axis, least = loads.flow.axis, least_rank_load(loads.flow.axis)
            s_per_byte, latency_s = loads.floor.s_per_byte, loads.floor.latency_s
            for (level, _, _), load in loads.load.items():
                if load > 1e-9:
                    cost = self.problem.tree.levels[level]
                    s_per_byte = max(s_per_byte, load * cost.s_per_byte, least * cost.rank_s_per_byte)
                    latency_s = max(latency_s, cost.latency_s)
            total += axis.exposed * (axis.messages * latency_s + axis.bytes * s_per_byte)
        return total


def list_shapes(tree: SlotTree) -> list[list[int]]:
    """A number for each vertex of each level; vertices with equal trees below them have equal ones."""
    numbers: dict[tuple[int, ...], int] = {}
    shapes = [[0] * tree.slots]
    for lower, upper in zip(tree.above, tree.above[1:], strict=False):
        below: list[dict[int, int]] = [{} for _ in range(int(upper.max()) + 1)]
        for child, parent in zip(lower.tolist(), upper.tolist(), strict=True):
            below[parent][child] = shapes[-1][child]
        shapes.append([numbers.setdefault(tuple(sorted(each.values())), len(numbers) + 1) for each in below])
    return shapes


def _prepare(problem: Problem, index: int) -> _Loads:
    flow = problem.flows[index]
    neighbours: list[list[tuple[int, float, bool]]] = [[] for _ in range(problem.tree.slots)]
    for source, target, weight in zip(flow.edges.sources, flow.edges.targets, flow.edges.weights, strict=True):
        neighbours[int(source)].append((int(target), float(weight), True))
        neighbours[int(target)].append((int(source), float(weight), False))
    group = {int(rank): row for row, ranks in enumerate(flow.groups) for rank in ranks}
    return _Loads(flow, find_floor(problem, index), neighbours, group)
