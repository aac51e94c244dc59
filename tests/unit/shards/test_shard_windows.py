import numpy as np
import pytest

from windtunnel.shards.order import sample_order
from windtunnel.shards.windows import find_usable_rows, gather_windows, index_windows


def make_features(rows=40, columns=3):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def test_a_window_is_the_rows_up_to_and_including_its_end():
    features_tc = make_features()
    index = index_windows(40, window=5)
    x_btc = gather_windows(features_tc, index, np.array([3, 0, 35]))
    for row, end in enumerate([7, 4, 39]):
        assert np.array_equal(x_btc[row], features_tc[end - 4 : end + 1])


def test_batches_are_contiguous_float32():
    x_btc = gather_windows(make_features(), index_windows(40, window=5), np.array([1, 2]))
    assert x_btc.shape == (2, 5, 3)
    assert x_btc.dtype == np.float32
    assert x_btc.flags.c_contiguous


def test_a_change_in_the_future_changes_no_window():
    features_tc = make_features()
    index = index_windows(40, window=5)
    before = gather_windows(features_tc, index, np.arange(10))
    features_tc[index.ends[9] + 1 :] = np.nan
    assert np.array_equal(gather_windows(features_tc, index, np.arange(10)), before)


def test_windows_leave_room_for_the_horizon():
    assert index_windows(40, window=5, horizon=3).ends.tolist() == list(range(4, 37))
    assert len(index_windows(4, window=5)) == 0


def test_windows_with_an_unusable_row_are_left_out():
    features_tc = make_features(12)
    features_tc[0] = np.nan
    features_tc[6, 1] = np.inf
    usable = find_usable_rows(features_tc)
    assert np.flatnonzero(~usable).tolist() == [0, 6]
    assert index_windows(12, window=3, usable=usable).ends.tolist() == [3, 4, 5, 9, 10, 11]


def test_a_sample_outside_the_index_is_refused():
    index = index_windows(40, window=5)
    with pytest.raises(IndexError):
        gather_windows(make_features(), index, np.array([36]))
    with pytest.raises(AssertionError, match="negative"):
        gather_windows(make_features(), index, np.array([-1]))


def test_an_order_is_a_permutation_that_seed_and_epoch_decide():
    order = sample_order(1000, seed=1, epoch=2)
    assert sorted(order.tolist()) == list(range(1000))
    assert np.array_equal(order, sample_order(1000, seed=1, epoch=2))
    assert not np.array_equal(order, sample_order(1000, seed=1, epoch=3))
    assert not np.array_equal(order, sample_order(1000, seed=2, epoch=1))


def test_the_order_is_the_one_that_earlier_runs_had():
    assert sample_order(8, seed=0, epoch=0).tolist() == [2, 4, 3, 6, 5, 0, 1, 7]
