import numpy as np

from windtunnel.featurize.signals import carry_forward, differences, log_positive, take_as_of

NAN = np.nan


def test_last_finite_value_is_carried_over_nan_and_infinity() -> None:
    carried = carry_forward(np.array([NAN, 1.0, NAN, np.inf, 2.0, NAN]))
    np.testing.assert_array_equal(carried, [NAN, 1, 1, 1, 2, 2])


def test_value_as_of_a_moment_is_never_a_later_one() -> None:
    times = np.array([10, 20, 30])
    values = np.array([1.0, NAN, 3.0])
    known = take_as_of(values, times, at=np.array([9, 10, 19, 20, 29, 30, 99]))
    np.testing.assert_array_equal(known, [NAN, 1, 1, 1, 1, 3, 3])


def test_a_series_without_rows_is_never_known() -> None:
    assert np.isnan(take_as_of(np.array([]), np.array([], dtype=np.int64), at=np.array([1, 2]))).all()


def test_logarithm_of_zero_or_less_is_unknown() -> None:
    np.testing.assert_array_equal(log_positive(np.array([1.0, 0.0, -37.6, NAN]), scale=100), [0, NAN, NAN, NAN])


def test_first_difference_is_unknown() -> None:
    np.testing.assert_array_equal(differences(np.array([1.0, 4.0, 2.0])), [NAN, 3, -2])
