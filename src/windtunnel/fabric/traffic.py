"""What ranks send to each other: the axes of a layout, and which ranks each axis joins. Pure.

A global rank is a number of mixed radix over the axes, the first of which varies fastest, as in a DeviceMesh whose
last dimension is this first axis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from windtunnel.errors import LayoutError

Pattern = Literal["ring", "chain", "all-to-all", "hierarchical"]
"""ring: all-reduce, all-gather, reduce-scatter. chain: pipeline stages, one direction at a time. hierarchical: an
all-reduce whose switches each send the sum of what is below them once."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """An axis of a layout and what one step sends along it."""

    name: str
    ranks: int
    pattern: Pattern = "ring"
    bytes: float = 0.0
    """That a rank sends each neighbour in a step (to all others together in an all-to-all): 2 (n - 1) / n times the
    gradients for a ring's all-reduce (`ring_bytes`), activations and their gradients for a chain."""
    messages: float = 0.0
    """One after the other in a step, each of which costs a latency."""
    exposed: float = 1.0
    """Share of its time that computing does not hide."""


@dataclass(frozen=True)
class Edges:
    """Directed pairs of ranks and the share of the axis's bytes on each."""

    sources: Ints
    targets: Ints
    weights: Floats


def ring_bytes(operation: Literal["all_reduce", "all_gather", "reduce_scatter"], size_bytes: float, n: int) -> float:
    """Bytes over each edge of a ring of n ranks; `size_bytes` is the whole tensor, as nccl-tests counts it."""
    return size_bytes * (n - 1) / n * (2 if operation == "all_reduce" else 1)


def require_axes(axes: Sequence[Axis], ranks: int) -> None:
    """Raise LayoutError where the axes do not make up the ranks."""
    product = math.prod(axis.ranks for axis in axes)
    if product != ranks or any(axis.ranks < 1 for axis in axes):
        named = " x ".join(f"{axis.name} {axis.ranks}" for axis in axes) or "no axes"
        raise LayoutError(f"{named} is {product} ranks but the grant has {ranks}: make them equal")
    for axis in axes:
        if not (0 <= axis.exposed <= 1 and axis.bytes >= 0 and axis.messages >= 0):
            raise LayoutError(f"axis {axis.name} has a cost below 0 or exposes more than all of it: {axis}")


def group_ranks(axes: Sequence[Axis], index: int) -> Ints:
    """The groups of one axis, a row each, its ranks in order."""
    stride = math.prod(axis.ranks for axis in axes[:index])
    size = axes[index].ranks
    everyone = np.arange(math.prod(axis.ranks for axis in axes), dtype=np.int64)
    firsts = everyone[(everyone // stride) % size == 0]
    groups: Ints = firsts[:, None] + stride * np.arange(size, dtype=np.int64)[None, :]
    return groups


def join_ranks(groups: Ints, pattern: Pattern) -> Edges:
    """The directed pairs of a pattern within each group; none for a group of one."""
    size = groups.shape[1]
    here = np.arange(size)
    if size == 1:
        pairs = np.empty((0, 2), dtype=np.int64)
    elif pattern == "all-to-all":
        pairs = np.array([(i, j) for i in here for j in here if i != j])
    elif pattern == "chain":
        pairs = np.stack([here[:-1], here[1:]], 1)
    else:
        pairs = np.stack([here, (here + 1) % size], 1)
    weight = 1 / max(1, size - 1) if pattern == "all-to-all" else 1.0
    sources, targets = groups[:, pairs[:, 0]].ravel(), groups[:, pairs[:, 1]].ravel()
    return Edges(sources, targets, np.full(len(sources), weight))
