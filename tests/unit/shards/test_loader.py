from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from window_shards import FIELDS, write_dataset
from windtunnel.errors import LayoutError, SettingsError
from windtunnel.shards.dataset import make_loader, open_dataset
from windtunnel.shards.loader import Position, RankShare
from windtunnel.shards.reader import read_shard
from windtunnel.shards.windows import place_windows

WORLDS = (1, 2, 3, 4, 6, 8)
X, PRICE = FIELDS


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    manifest = write_dataset(tmp_path_factory.mktemp("shards"))
    dataset = open_dataset(manifest, ["features", "price"])
    windows = place_windows([(one.first_row, one.end_row) for one in dataset.series], FIELDS)

    @cache
    def build(shuffle, batch_size=24, rank=0, world_size=1, threads=1):
        share = RankShare(batch_size, rank, world_size)
        return make_loader(
            dataset, windows, FIELDS, shuffle=shuffle, seed=9, share=share, threads=threads, buffer_bytes=60_000
        )

    build.windows, build.folder = windows, manifest.parent
    return build


def take(loader, position, batches=10_000):
    """Samples, and copies of both fields, of the next batches."""
    found, after = [], position
    for batch, _ in zip(loader.batches(position), range(batches), strict=False):
        found.append((batch.samples, batch.tensors[X].clone(), batch.tensors[PRICE].clone()))
        after = batch.after
    return found, after


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shuffle", ["global", "buffered"])
def test_every_sample_comes_once_with_its_own_rows_of_its_instrument(make, shuffle, threads):
    parts = {file: read_shard(make.folder / file) for file in ("s0.h5", "s2.h5", "s1.h5")}
    features, price = (np.concatenate([part[name] for part in parts.values()]) for name in ("features", "price"))
    found, after = take(make(shuffle, threads=threads), Position(9))
    assert after == Position(9, epoch=1)
    samples = np.concatenate([samples for samples, _, _ in found])
    assert np.array_equal(np.sort(samples), np.arange(make.windows.samples))
    for ids, x, ahead in found:
        for i, row in enumerate(make.windows.rows_of(ids)):
            assert row + 4 <= 950 or row - 7 >= 950, "a window over two instruments"
            assert np.array_equal(x[i], features[row - 7 : row + 1])
            assert np.array_equal(ahead[i], price[row : row + 4])


@settings(deadline=None, max_examples=25)
@given(
    shuffle=st.sampled_from(["global", "buffered"]),
    epoch=st.integers(0, 3),
    legs=st.lists(st.tuples(st.sampled_from(WORLDS), st.integers(0, 15)), max_size=4),
)
def test_an_epoch_is_seen_exactly_once_while_the_number_of_ranks_changes(make, shuffle, epoch, legs):
    unbroken, _ = take(make(shuffle), Position(9, epoch))
    position, found = Position(9, epoch), []
    for world_size, batches in (*legs, (1, 10_000)):
        if position.epoch != epoch:
            break
        ranks = [take(make(shuffle, 24, rank, world_size), position, batches) for rank in range(world_size)]
        assert len({after for _, after in ranks}) == 1
        for parts in zip(*(batches for batches, _ in ranks), strict=True):
            found.append([torch.cat([torch.as_tensor(part[i]) for part in parts]) for i in range(3)])
        position = ranks[0][1]
    assert len(found) == len(unbroken)
    for ours, theirs in zip(found, unbroken, strict=True):
        assert all(torch.equal(a, torch.as_tensor(b)) for a, b in zip(ours, theirs, strict=True))


@settings(deadline=None, max_examples=25)
@given(
    shuffle=st.sampled_from(["global", "buffered"]),
    batch_size=st.integers(8, 400),
    world_size=st.sampled_from(WORLDS),
)
def test_ranks_divide_every_batch_without_gap_or_overlap(make, shuffle, batch_size, world_size):
    ranks = [take(make(shuffle, batch_size, rank, world_size), Position(9))[0] for rank in range(world_size)]
    for parts in zip(*ranks, strict=True):
        sizes = [len(samples) for samples, _, _ in parts]
        assert max(sizes) - min(sizes) <= 1
    samples = np.concatenate([samples for parts in ranks for samples, _, _ in parts])
    assert np.array_equal(np.sort(samples), np.arange(make.windows.samples))


@pytest.mark.parametrize("shuffle", ["global", "buffered"])
def test_a_batch_that_is_made_alone_is_the_one_of_the_stream(make, shuffle):
    for batch in make(shuffle).batches(Position(9, 1)):
        at = Position(9, 1, batch.after.place - 24) if batch.after.epoch == 1 else None
        if at is not None:
            alone = make(shuffle).at(at)
            assert alone.after == batch.after
            assert torch.equal(alone.tensors[X], batch.tensors[X])


def test_resuming_reads_no_chunk_of_the_batches_before(make):
    loader, asked = make("buffered", 25), []
    inner = loader._source

    class Counting:
        form = staticmethod(inner.form)

        @staticmethod
        def fill(rows, outs, *, threads):
            asked.append(len(rows))
            inner.fill(rows, outs, threads=threads)

    loader._source = Counting
    place = 40 * 25
    next(loader.batches(Position(9, 0, place)))
    loader._source = inner
    end = loader._order.span_end(place, epoch=0)
    assert asked[0] == end - place


def test_buffers_are_used_again(make):
    loader = make("buffered")
    addresses = {batch.tensors[X].untyped_storage().data_ptr() for batch in loader.batches(Position(9))}
    again = {batch.tensors[X].untyped_storage().data_ptr() for batch in loader.batches(Position(9, 1))}
    assert len(addresses | again) <= 4  # two, each grown once at most


def test_a_position_of_another_seed_or_of_other_data_is_refused(make):
    with pytest.raises(SettingsError, match="position is of seed 8, this loader of 9"):
        next(make("global").batches(Position(8)))
    with pytest.raises(SettingsError, match="place 5000 of epoch 0 is in no epoch of 1263 samples"):
        next(make("global").batches(Position(9, 0, 5000)))


def test_more_ranks_than_samples_in_a_batch_are_refused():
    with pytest.raises(LayoutError, match="batch_size 3 over 4 ranks"):
        RankShare(3, 0, 4)


def test_a_buffer_too_small_for_a_chunk_is_refused(make, tmp_path):
    dataset = open_dataset(write_dataset(tmp_path), ["features", "price"])
    with pytest.raises(SettingsError, match=r"a chunk holds 64 windows of .* a buffer 5: raise buffer_bytes to"):
        make_loader(dataset, make.windows, FIELDS, shuffle="buffered", seed=0, share=RankShare(4), buffer_bytes=1000)
