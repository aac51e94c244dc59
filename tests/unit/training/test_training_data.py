import numpy as np
import pytest
import torch

from toy_trial import trial_settings, write_features
from windtunnel.errors import LayoutError, SettingsError
from windtunnel.training.data import load_data, rank_slice, take_rows


def _epoch(first_step, batches=8):
    steps = range(first_step, first_step + batches)
    return [take_rows(step, first_row=31, samples=100, batch_size=12, seed=5) for step in steps]


def test_an_epoch_visits_no_sample_twice_and_the_next_has_another_order():
    first, second = np.concatenate(_epoch(0)), np.concatenate(_epoch(8))
    for rows in (first, second):
        assert len(set(rows)) == 96
        assert min(rows) >= 31
        assert max(rows) < 131
    assert not np.array_equal(first, second)


def test_the_batch_of_a_step_does_not_depend_on_the_steps_before():
    assert np.array_equal(_epoch(13)[0], _epoch(8)[5])


@pytest.mark.parametrize(("batch_size", "ranks"), [(12, 1), (12, 4), (13, 4), (5, 5)])
def test_ranks_divide_a_batch_without_gap_or_overlap(batch_size, ranks):
    parts = [range(batch_size)[rank_slice(batch_size, rank=rank, world_size=ranks)] for rank in range(ranks)]
    assert [row for part in parts for row in part] == list(range(batch_size))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_smaller_than_the_ranks_is_refused():
    with pytest.raises(LayoutError, match="batch_size 3 gives 4 ranks less than a sample each"):
        rank_slice(3, rank=0, world_size=4)


def test_a_gathered_window_ends_at_its_row_and_its_target_is_of_that_row(tmp_path):
    data = load_data(write_features(tmp_path), trial_settings())
    rows = np.array([20, 7, 99])
    x_btc, target_bo = data.gather(rows, torch.device("cpu"))
    assert x_btc.shape == (3, 8, 6)
    assert np.array_equal(x_btc[0].numpy(), data.features_tc[13:21])
    assert np.array_equal(target_bo.numpy(), data.table.values[rows])


def test_features_are_scaled_by_the_training_rows(tmp_path):
    data = load_data(write_features(tmp_path), trial_settings())
    train = data.features_tc[: data.split.train.end_row, 2:]
    assert np.allclose(train.mean(0), 0, atol=1e-4)
    assert not np.allclose(data.features_tc[:, 2:].mean(0), 0, atol=1e-4)
    assert np.isfinite(data.features_tc).all()


def test_a_batch_larger_than_the_training_stretch_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="batch_size 5000 is more than the 270 samples"):
        load_data(write_features(tmp_path), trial_settings(batch_size=5000))
