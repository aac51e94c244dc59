"""Times of collectives by rings, from bandwidths: nobody's topology, one bandwidth inside a node and one out of it.

Rings of one axis that run at the same time share a node's links to the others.
"""

from windtunnel.perfmodel.constants import Constants
from windtunnel.perfmodel.layout import Layout

HALF = 2
"""Bytes of a number in half precision."""
_WEIGHT_PASSES = 3.0
"""Gathered for the forward and for the backward pass, and their gradients scattered."""


def all_reduce_s(size_bytes: float, ranks: int, bytes_per_s: float) -> float:
    """A ring moves each byte twice, but for its own share.

    Source: Patarasuk and Yuan 2009, doi 10.1016/j.jpdc.2008.09.002.
    """
    return 2.0 * gather_s(size_bytes, ranks, bytes_per_s)


def gather_s(size_bytes: float, ranks: int, bytes_per_s: float) -> float:
    """An all-gather to, or a reduce-scatter of, so many bytes on each rank."""
    return size_bytes * (ranks - 1) / ranks / bytes_per_s


def find_bandwidth(ranks: int, in_node: int, layout: Layout, constants: Constants) -> float:
    """Bus bandwidth in bytes a second of a group of which a node holds `in_node` ranks."""
    if ranks <= in_node:
        return constants.inside_bytes_per_s
    rings = max(1.0, layout.ranks_per_node / in_node)
    return min(constants.inside_bytes_per_s, constants.node_bytes_per_s / rings)


def exchange_activations_s(tokens: float, width: int, layout: Layout, constants: Constants) -> float:
    """One exchange of a layer's activations in the tensor group.

    With sequence parallelism it is a gather and a scatter, which move as much as the all-reduce without it.
    """
    if layout.tensor == 1:
        return 0.0
    bandwidth = find_bandwidth(layout.tensor, layout.tensor_in_node, layout, constants)
    moved_s = all_reduce_s(tokens * width * HALF, layout.tensor, bandwidth)
    return moved_s + constants.sync_s * (layout.tensor - 1)


def transfer_to_stage_s(tokens: float, width: int, layout: Layout, constants: Constants) -> float:
    """From a pipeline stage to the next, of one micro-batch, in one direction."""
    crosses = layout.tensor * layout.data >= layout.ranks_per_node or layout.ranks > layout.ranks_per_node
    share = constants.node_bytes_per_s / layout.ranks_per_node if crosses else constants.inside_bytes_per_s
    return tokens * width * HALF / layout.tensor / share


def reduce_gradients_s(params: float, layout: Layout, constants: Constants) -> float:
    """All-reduce of a rank's gradients over its data group, with nothing to hide it."""
    if layout.data == 1:
        return 0.0
    return all_reduce_s(
        params * HALF, layout.data, find_bandwidth(layout.data, layout.data_in_node, layout, constants)
    )


def gather_weights_s(params: float, layout: Layout, constants: Constants) -> float:
    """Of sharded weights, for one micro-batch: gathered for each pass, and their gradients scattered."""
    if layout.data == 1:
        return 0.0
    bandwidth = find_bandwidth(layout.data, layout.data_in_node, layout, constants)
    return _WEIGHT_PASSES * gather_s(params * HALF, layout.data, bandwidth)
