import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.shards.order import BufferedOrder, GlobalOrder
from windtunnel.shards.permutation import permute

FIRST = [4, 6, 7, 3, 2, 8, 1, 0, 9, 5]
COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any)


@settings(deadline=None)
@given(n=st.integers(1, 3000), seed=st.integers(0, 2**40), epoch=st.integers(0, 1000))
def test_a_permutation_meets_every_item_once(n, seed, epoch):
    assert np.array_equal(np.sort(permute(np.arange(n), n, key=(seed, epoch))), np.arange(n))


@settings(deadline=None)
@given(n=st.integers(1, 2**61), places=st.lists(st.integers(0, 2**61), min_size=1, max_size=20))
def test_any_place_of_any_size_is_computed_alone(n, places):
    wanted = np.array([place % n for place in places])
    together = permute(wanted, n, key=(7,))
    assert ((together >= 0) & (together < n)).all()
    assert [int(permute(wanted[i : i + 1], n, key=(7,))[0]) for i in range(len(wanted))] == together.tolist()
    assert len(set(together.tolist())) == len(set(wanted.tolist()))


def test_a_permutation_of_a_seed_stays_what_it_is():
    assert permute(np.arange(10), 10, key=(0, 0)).tolist() == FIRST


def test_neighbours_and_places_do_not_show_in_a_permutation():
    n = 100_000
    found = permute(np.arange(n), n, key=(5, 0)).astype(float)
    assert abs(np.corrcoef(np.arange(n), found)[0, 1]) < 0.02
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.02
    blocks = np.histogram2d(np.arange(n), found, bins=16)[0]
    assert np.sum((blocks - n / 256) ** 2 / (n / 256)) < 350  # chi-squared of 225 degrees of freedom: p of 1e-7


@settings(deadline=None)
@given(counts=COUNTS, buffer_chunks=st.integers(1, 8), seed=st.integers(0, 99), epoch=st.integers(0, 9))
def test_a_buffer_takes_whole_chunks_and_an_epoch_every_sample_once(counts, buffer_chunks, seed, epoch):
    order = BufferedOrder(np.array(counts), buffer_chunks, seed)
    n = order.samples
    found = order.at(np.arange(n), epoch=epoch)
    assert np.array_equal(np.sort(found), np.arange(n))
    chunk_of = np.repeat(np.arange(len(counts)), counts)
    first, seen = 0, set()
    while first < n:
        end = order.span_end(first, epoch=epoch)
        chunks = set(chunk_of[found[first:end]].tolist())
        assert len(chunks) <= buffer_chunks
        assert not chunks & seen
        seen |= chunks
        first = end


@pytest.mark.parametrize("kind", ["global", "buffered"])
def test_the_order_at_a_place_does_not_depend_on_what_was_asked_before(kind):
    order = GlobalOrder(40_000, 3) if kind == "global" else BufferedOrder(np.full(1000, 40), 7, 3)
    whole = order.at(np.arange(40_000), epoch=2)
    for first, end in ((0, 1), (16_380, 16_390), (39_000, 40_000)):
        assert np.array_equal(order.at(np.arange(first, end), epoch=2), whole[first:end])
    assert not np.array_equal(order.at(np.arange(100), epoch=3), whole[:100])
