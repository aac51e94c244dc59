"""Orders in which a grid of ranks is laid onto a row of nodes: strips some rows high, filled column by column. Pure.

A switch then holds a block of the grid, as high as the strip. What it sends is as many groups of the row axis as the
strip is high, and as many of the column axis as the block is wide: the height trades one for the other.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from windtunnel.fabric.congestion import Problem
from windtunnel.fabric.slots import SlotTree
from windtunnel.fabric.traffic import Ints

_MOST_HEIGHTS = 12


@dataclass(frozen=True)
class Strips:
    """An order of the ranks, and after how many of them each strip ends."""

    ranks: Ints
    height: int
    ends: tuple[int, ...]


def list_strips(problem: Problem) -> Iterator[Strips]:
    """The row axis, the column axis and the height vary; the other axes stay around or inside."""
    sizes = [axis.ranks for axis in problem.axes]
    grid = np.arange(problem.tree.slots, dtype=np.int64).reshape(sizes[::-1]).transpose()
    wide = [index for index, size in enumerate(sizes) if size > 1]
    if len(wide) < 2:
        yield Strips(np.arange(problem.tree.slots, dtype=np.int64), 1, (problem.tree.slots,))
        return
    for row, column in itertools.permutations(wide, 2):
        others = [index for index in range(len(sizes)) if index not in (row, column)]
        for height in _list_heights(sizes[column]):
            yield _cut(grid.transpose([*others, column, row]), height)


def assign_strips(strips: Strips, tree: SlotTree) -> Ints:
    """Slots of the ranks: whole switches fill each strip exactly where some set of them does."""
    order = fill_strips(tree, strips)
    slots = np.empty(tree.slots, dtype=np.int64)
    slots[strips.ranks] = order
    return slots


def fill_strips(tree: SlotTree, strips: Strips) -> Ints:
    """All slots, in the order of the strips' ranks."""
    left = list_leaves(tree)
    filled: list[int] = []
    carried: list[int] = []
    most = max(map(len, left))
    for end in strips.ends:
        filled += carried
        room = end - len(filled)
        chosen, left = take_exactly(left, room)
        filled += [slot for leaf in align(chosen, strips.height, most) for slot in leaf]
        carried, filled = filled[end:], filled[:end]
    return np.array(filled + carried, dtype=np.int64)


def list_leaves(tree: SlotTree) -> list[list[int]]:
    """Slots of each lowest vertex that holds several, in the order of a walk of the tree that begins at the first."""
    levels = [level for level in range(len(tree.above)) if tree.sizes(level).max() > 1]
    lowest = levels[0] if levels else 0
    firsts = [np.unique(vertices, return_index=True)[1][vertices] for vertices in tree.above[lowest:]]
    walked = np.lexsort([np.arange(tree.slots), *firsts])
    leaves = itertools.groupby(walked.tolist(), key=lambda slot: int(tree.above[lowest][slot]))
    return [list(slots) for _, slots in leaves]


def take_exactly(leaves: Sequence[list[int]], room: int) -> tuple[list[list[int]], list[list[int]]]:
    """Leaves that fill the room exactly, early ones first, and those that are left; else as many as overfill it."""
    reached: dict[int, tuple[int, ...]] = {0: ()}
    for index, leaf in enumerate(leaves):
        for total in sorted(reached, reverse=True):
            reached.setdefault(total + len(leaf), (*reached[total], index))
        if room in reached:
            break
    total = room if room in reached else min((t for t in reached if t > room), default=max(reached))
    chosen = set(reached[total])
    taken = [leaf for index, leaf in enumerate(leaves) if index in chosen]
    return taken, [leaf for index, leaf in enumerate(leaves) if index not in chosen]


def align(leaves: Sequence[list[int]], height: int, most: int) -> list[list[int]]:
    """An order of the leaves in which few begin within a column and end within another: each then is less wide."""
    left, ordered, offset = list(leaves), [], 0
    least_wide = -(-most // height)
    while left:
        best = min(left, key=lambda leaf: _misfit(len(leaf), offset, height, least_wide))
        left.remove(best)
        ordered.append(best)
        offset = (offset + len(best)) % height
    return ordered


def _misfit(size: int, offset: int, height: int, least_wide: int) -> tuple[bool, bool, int]:
    wide = -(-(offset + size) // height)
    return wide > least_wide, (offset + size) % height != 0, -size


def _cut(grid: Ints, height: int) -> Strips:
    """The last two axes of the grid, columns and rows, into strips; the axes before them go around these, slowest."""
    columns, rows = grid.shape[-2:]
    blocks = grid.reshape(-1, columns, rows)
    ranks, ends, done = [], [], 0
    for block in blocks:
        for start in range(0, columns, height):
            strip = block[start : start + height].transpose().ravel()
            done += len(strip)
            ranks.append(strip)
            ends.append(done)
    return Strips(np.concatenate(ranks), height, tuple(ends))


def _list_heights(columns: int) -> list[int]:
    """All small ones, and those that divide."""
    return [h for h in range(1, columns + 1) if h <= _MOST_HEIGHTS or columns % h == 0]
