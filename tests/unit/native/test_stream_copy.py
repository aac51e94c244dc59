import random

import numpy as np
import pytest

from windtunnel.native.stream import copy_regions

_PIECE_BYTES = 4 << 20


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_regions_of_any_size_and_alignment_are_copied_whole_and_nothing_beside_them(threads):
    generator = random.Random(threads)
    sizes = [0, 1, 63, 64, 65, 3, _PIECE_BYTES - 1, _PIECE_BYTES, _PIECE_BYTES + 1, 2 * _PIECE_BYTES + 17, 0]
    generator.shuffle(sizes)
    sources = [np.random.default_rng(size).integers(0, 256, size + 64, dtype=np.uint8) for size in sizes]
    targets = [np.full(size + 192, 7, dtype=np.uint8) for size in sizes]
    offsets = [(generator.randrange(64), generator.randrange(1, 64)) for _ in sizes]
    copy_regions(
        [
            (target.ctypes.data + to, source.ctypes.data + at, size)
            for target, source, size, (at, to) in zip(targets, sources, sizes, offsets, strict=True)
        ],
        threads=threads,
    )
    for target, source, size, (at, to) in zip(targets, sources, sizes, offsets, strict=True):
        assert np.array_equal(target[to : to + size], source[at : at + size])
        assert (target[:to] == 7).all()
        assert (target[to + size :] == 7).all()


def test_nothing_to_copy_is_no_error():
    copy_regions([], threads=2)
