"""Who reads what: files dealt over ranks by size. Pure, so that every rank comes to the same answer by itself."""

from collections.abc import Sequence


def deal_files(sizes: Sequence[int], *, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Positions of files for each rank: the largest file first, each to the rank with the least to read so far."""
    loads = [0] * ranks
    hands: list[list[int]] = [[] for _ in range(ranks)]
    for position in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        rank = min(range(ranks), key=lambda index: (loads[index], index))
        hands[rank].append(position)
        loads[rank] += sizes[position]
    return tuple(tuple(sorted(hand)) for hand in hands)
