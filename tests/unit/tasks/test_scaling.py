import numpy as np

from windtunnel.tasks.scaling import CLIP, apply_scale, fit_scale


def _table():
    return np.random.default_rng(0).normal(50, 3, (500, 4)).astype(np.float32)


def test_scaled_rows_have_mean_0_and_deviation_1():
    x_tc = _table()
    scaled = apply_scale(x_tc, fit_scale(x_tc))
    assert scaled.dtype == np.float32
    assert np.allclose(scaled.mean(0), 0, atol=1e-4)
    assert np.allclose(scaled.std(0), 1, atol=1e-3)


def test_a_scale_is_fitted_on_the_rows_it_is_given_and_no_others():
    x_tc = _table()
    scale = fit_scale(x_tc[:300])
    x_tc[300:] *= 9
    assert np.array_equal(fit_scale(x_tc[:300]).mean, scale.mean)


def test_missing_values_become_0_and_do_not_move_the_scale():
    x_tc = _table()
    expected = fit_scale(x_tc[2:])
    x_tc[0], x_tc[1] = np.nan, np.inf
    scale = fit_scale(x_tc)
    assert np.allclose(scale.mean, expected.mean)
    assert np.allclose(scale.std, expected.std)
    assert not apply_scale(x_tc, scale)[:2].any()


def test_a_column_that_never_varies_becomes_0():
    x_tc = np.full((100, 1), 0.1, dtype=np.float32)
    assert not apply_scale(x_tc, fit_scale(x_tc)).any()
    empty = np.full((100, 1), np.nan, dtype=np.float32)
    assert not apply_scale(empty, fit_scale(empty)).any()


def test_an_outlier_is_cut():
    x_tc = _table()
    scale = fit_scale(x_tc)
    x_tc[7, 2] = 1e6
    assert apply_scale(x_tc, scale)[7, 2] == CLIP
