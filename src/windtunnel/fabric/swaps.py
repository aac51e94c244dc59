"""Local search: two ranks change places as long as that costs less, or loads the busy switches less. Pure."""

import random

import numpy as np

from windtunnel.fabric.congestion import Flow, Problem, total_cost_s
from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.traffic import Ints

_CLOSE = 1e-9


def improve_by_swaps(problem: Problem, slots: Ints, *, stop_at_s: float, tries: int, seed: int = 0) -> Ints:
    """The slots after at most so many tried swaps; the same for the same seed."""
    drawn = random.Random(seed)
    best, best_s = slots.copy(), total_cost_s(problem, slots)
    spread = _spread(problem, best)
    for _ in range(tries):
        if best_s <= stop_at_s * (1 + _CLOSE):
            break
        one, other = drawn.randrange(len(best)), drawn.randrange(len(best))
        best[[one, other]] = best[[other, one]]
        cost_s = total_cost_s(problem, best)
        wider = _spread(problem, best) if cost_s <= best_s * (1 + _CLOSE) else np.inf
        if cost_s < best_s * (1 - _CLOSE) or wider < spread:
            best_s, spread = min(cost_s, best_s), wider
        else:
            best[[one, other]] = best[[other, one]]
    return best


def _spread(problem: Problem, slots: Ints) -> float:
    """Sum over vertices of their squared seconds: it falls while the busiest ones, of equal load, are relieved."""
    return sum(_spread_flow(problem.tree, flow, slots) for flow in problem.flows)


def _spread_flow(tree: SlotTree, flow: Flow, slots: Ints) -> float:
    total = 0.0
    for vertices, level in zip(tree.above, tree.levels, strict=True):
        places = vertices[slots]
        out, into = places[flow.edges.sources], places[flow.edges.targets]
        crossing = out != into
        load = np.bincount(out[crossing], flow.edges.weights[crossing])
        total += float(((load * level.s_per_byte) ** 2).sum())
    return total * (flow.axis.exposed * flow.axis.bytes) ** 2
