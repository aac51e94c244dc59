"""The least cost of a small placement by trying every order, by code of its own: nothing of the solver's search."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from windtunnel.fabric.congestion import Flow, Problem
from windtunnel.fabric.slots import SlotTree

_AT_ONCE = 200_000


def find_least_s(problem: Problem) -> float:
    """Seconds of the cheapest of all orders of the slots."""
    return min(float(_cost_orders(problem, orders).min()) for orders in _list_orders(problem.tree.slots))


def _list_orders(slots: int) -> Iterator[npt.NDArray[np.int8]]:
    """All permutations in blocks."""
    everything = itertools.permutations(range(slots))
    while block := list(itertools.islice(everything, _AT_ONCE)):
        yield np.array(block, dtype=np.int8)


def _cost_orders(problem: Problem, orders: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    return sum((_cost_flow(problem.tree, flow, orders) for flow in problem.flows), np.zeros(len(orders)))


def _cost_flow(tree: SlotTree, flow: Flow, orders: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    slowest, latency = np.zeros(len(orders)), np.zeros(len(orders))
    for vertices, level in zip(tree.above, tree.levels, strict=True):
        # Where no vertex holds two ranks every order loads them alike.
        alike = len(set(vertices.tolist())) == len(vertices)
        places = vertices.astype(np.int8)[orders[:1] if alike else orders]
        load, alone = _load_busiest(flow, places), _load_rank(flow, places)
        slowest = np.maximum(slowest, np.maximum(load * level.s_per_byte, alone * level.rank_s_per_byte))
        latency = np.maximum(latency, (load > 0) * level.latency_s)
    axis = flow.axis
    return axis.exposed * (axis.messages * latency + axis.bytes * slowest)


def _load_busiest(flow: Flow, places: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """By order, the largest load of any vertex; from who is below it alone."""
    pattern, size = flow.axis.pattern, flow.axis.ranks
    most = np.zeros(len(places))
    for vertex in range(int(places.max()) + 1):
        below = (places == vertex)[:, flow.groups]
        if pattern == "hierarchical":
            held = below.sum(axis=2)
            load = ((held > 0) & (held < size)).sum(axis=1)
        elif pattern == "all-to-all":
            held = below.sum(axis=2)
            load = (held * (size - held)).sum(axis=1) / max(1, size - 1)
        else:
            after = np.roll(below, -1, axis=2)
            ends = size if pattern == "ring" and size > 1 else size - 1
            out, into = (below & ~after)[:, :, :ends], (after & ~below)[:, :, :ends]
            load = np.maximum(out.sum(axis=(1, 2)), into.sum(axis=(1, 2)))
        most = np.maximum(most, load)
    return most


def _load_rank(flow: Flow, places: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """By order, the largest share that a rank sends away."""
    grouped = places[:, flow.groups]
    size = flow.axis.ranks
    if flow.axis.pattern == "all-to-all":
        most = [(grouped != grouped[:, :, rank : rank + 1]).sum(axis=2).max(axis=1) for rank in range(size)]
        return np.max(most, axis=0) / max(1, size - 1)
    return (grouped != grouped[:, :, :1]).any(axis=(1, 2)) * 1.0
