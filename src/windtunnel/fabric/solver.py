"""Which rank goes where in a grant: the order of least exposed cost, what no order can beat, and the gap. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.fabric.bounds import find_bound_s
from windtunnel.fabric.congestion import Problem, build_problem, total_cost_s
from windtunnel.fabric.exact import search_exactly
from windtunnel.fabric.fold import Fold, bound_fold_s, list_folds, unfold
from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.strips import assign_strips, list_strips
from windtunnel.fabric.swaps import improve_by_swaps
from windtunnel.fabric.traffic import Axis, Ints

NO_GAIN = 0.02
"""A shorter communication time by less than this share is no gain that a trial would show."""
_EXACT_SLOTS = 16
_EXACT_STEPS = 200_000
_SWAPS = 3000
_CLOSE = 1e-9


@dataclass(frozen=True)
class Placement:
    """An order of the ranks and what is known of it. Rank r runs on `hosts[r]`, at the grant's slot `slots[r]`."""

    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    cost_s: float
    bound_s: float
    """No order costs less."""
    given_s: float
    """Cost of the order of the grant."""

    @property
    def gap(self) -> float:
        """How much more than the bound it costs, as a share of the bound; 0 is proven optimal."""
        return 0.0 if self.cost_s <= self.bound_s * (1 + _CLOSE) else self.cost_s / self.bound_s - 1

    @property
    def gain(self) -> float:
        """Share of the given order's cost that it saves."""
        return 1 - self.cost_s / self.given_s if self.given_s > 0 else 0.0

    @property
    def most_gain(self) -> float:
        """Share that any order can save."""
        return max(0.0, 1 - self.bound_s / self.given_s) if self.given_s > 0 else 0.0


def place_ranks(tree: SlotTree, axes: Sequence[Axis]) -> Placement:
    """The best order found. Few slots are searched to the end; many by strips and swaps, under a bound.

    Raises LayoutError where the axes do not make up as many ranks as there are slots.
    """
    problem = build_problem(tree, axes)
    given = np.arange(tree.slots, dtype=np.int64)
    given_s = total_cost_s(problem, given)
    bound_s, slots = min(given_s, find_bound_s(problem)), given
    if not _is_close(given_s, bound_s):
        slots, bound_s = _solve(problem, bound_s)
    cost_s = total_cost_s(problem, slots)
    if cost_s >= given_s:
        slots, cost_s = given, given_s
    hosts = tuple(tree.hosts[slot] for slot in slots)
    return Placement(hosts, tuple(slots.tolist()), cost_s, min(bound_s, cost_s), given_s)


def describe_gain(placement: Placement) -> str:
    """One sentence with the number: what the order gains, or that none can."""
    if placement.most_gain < NO_GAIN:
        return f"no gain expected: no order of ranks saves more than {placement.most_gain:.1%} of the communication"
    gap = "proven best" if placement.gap == 0 else f"within {placement.gap:.1%} of what no order can beat"
    if placement.gain < NO_GAIN:
        return f"no gain expected: {placement.gain:.1%} of the communication; {gap}"
    return f"{placement.gain:.1%} of the exposed communication saved against the given order; {gap}"


def _solve(problem: Problem, bound_s: float) -> tuple[Ints, float]:
    """The best slots, and the bound that holds for all."""
    best: Ints | None = None
    best_s = math.inf
    for fold in list_folds(problem):
        slots, fold_bound_s = _solve_fold(fold)
        bound_s = max(bound_s, fold_bound_s)
        if total_cost_s(problem, slots) < best_s:
            best, best_s = slots, total_cost_s(problem, slots)
        # What splits this fold's axes costs more than what is known: no other fold need be tried.
        if best is not None and best_s <= max(bound_s, fold.split_cost_s) * (1 + _CLOSE):
            return best, bound_s
    if best is None or problem.tree.slots <= _EXACT_SLOTS:
        return _search(problem, bound_s, start=best)
    return best, bound_s


def _solve_fold(fold: Fold) -> tuple[Ints, float]:
    nodes, outer_bound_s = _search(fold.outer, find_bound_s(fold.outer))
    return unfold(fold, nodes), max(bound_fold_s(fold), min(fold.inner_cost_s + outer_bound_s, fold.split_cost_s))


def _search(problem: Problem, bound_s: float, *, start: Ints | None = None) -> tuple[Ints, float]:
    candidates = [assign_strips(strips, problem.tree) for strips in list_strips(problem)]
    candidates += [np.arange(problem.tree.slots, dtype=np.int64)] if start is None else [start]
    costs_s = [total_cost_s(problem, slots) for slots in candidates]
    best = candidates[int(np.argmin(costs_s))]
    if _is_close(min(costs_s), bound_s):
        return best, bound_s
    if problem.tree.slots <= _EXACT_SLOTS:
        searched = search_exactly(problem, best, stop_at_s=bound_s, most_steps=_EXACT_STEPS)
        return searched.slots, max(bound_s, searched.cost_s) if searched.finished else bound_s
    return improve_by_swaps(problem, best, stop_at_s=bound_s, tries=_SWAPS), bound_s


def _is_close(cost_s: float, bound_s: float) -> bool:
    return cost_s <= bound_s * (1 + _CLOSE)
