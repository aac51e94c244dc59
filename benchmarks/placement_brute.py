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
    axis = flow.axis
    for vertices, level in zip(tree.above, tree.levels, strict=True):
        places = vertices.astype(np.int8)[orders]
        out, into = places[:, flow.edges.sources], places[:, flow.edges.targets]
        crosses = (out != into).any(axis=1)
        load = np.zeros(len(orders))
        for vertex in range(int(vertices.max()) + 1):
            if axis.pattern == "hierarchical":
                held = (places[:, flow.groups] == vertex).sum(axis=2)
                load = np.maximum(load, ((held > 0) & (held < axis.ranks)).sum(axis=1))
            else:
                leaves = (out == vertex) & (into != vertex)
                enters = (into == vertex) & (out != vertex)
                load = np.maximum(load, np.maximum(leaves.sum(axis=1), enters.sum(axis=1)))
        weight = float(flow.edges.weights[0]) if len(flow.edges.weights) else 0.0
        alone = _rank_load(flow, out, into) if axis.pattern == "all-to-all" else crosses * 1.0
        scale = 1.0 if axis.pattern == "hierarchical" else weight
        slowest = np.maximum(slowest, np.maximum(load * scale * level.s_per_byte, alone * level.rank_s_per_byte))
        latency = np.where(crosses, np.maximum(latency, level.latency_s), latency)
    return axis.exposed * (axis.messages * latency + axis.bytes * slowest)


def _rank_load(flow: Flow, out: npt.NDArray[np.int8], into: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """The largest share that a rank sends away."""
    most = np.zeros(len(out))
    for rank in np.unique(flow.edges.sources):
        mine = flow.edges.sources == rank
        most = np.maximum(most, ((out != into)[:, mine] * flow.edges.weights[mine]).sum(axis=1))
    return most
