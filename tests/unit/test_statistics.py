import math

import numpy as np
import pytest

from windtunnel.statistics import (
    detectable_difference,
    interquartile_range,
    median_interval,
    normal_quantile,
    paired_difference,
    paired_ratio,
    pooled_deviation,
    proportion_margin,
    smallest_count,
    student_quantile,
)


def test_interval_holds_the_median_and_repeats_itself():
    values = [5.0, 1.0, 3.0, 9.0, 2.0, 4.0, 8.0]
    interval = median_interval(values)
    assert interval.median == 4.0
    assert interval.low < 4.0 < interval.high
    assert interval.count == 7
    assert interval == median_interval(values)
    assert interval != median_interval(values, confidence=0.5)


def test_interval_covers_the_true_median_about_as_often_as_it_says():
    random = np.random.default_rng(1)
    intervals = [median_interval(random.lognormal(size=15), seed=i) for i in range(150)]
    covered = sum(i.low <= 1.0 <= i.high for i in intervals) / len(intervals)
    assert 0.88 <= covered <= 1.0


def test_interval_narrows_with_more_values():
    random = np.random.default_rng(2)
    few, many = (median_interval(random.normal(10, 1, size=n)) for n in (12, 1200))
    assert many.high - many.low < (few.high - few.low) / 3


def test_one_value_is_its_own_interval_but_not_reliable():
    interval = median_interval([3.0])
    assert (interval.low, interval.high, interval.count) == (3.0, 3.0, 1)
    assert not interval.reliable


def test_long_samples_are_resampled_in_blocks():
    interval = median_interval(np.arange(4001.0))
    assert interval.median == 2000.0
    assert 1900 < interval.low < interval.high < 2100


def test_smallest_count_is_the_sign_tests():
    assert smallest_count(0.95) == 6
    assert smallest_count(0.5) == 2


def test_paired_ratio_sees_through_noise_that_both_sides_share():
    random = np.random.default_rng(3)
    weather = random.lognormal(sigma=1.0, size=20)
    slow, fast = 2.0 * weather, weather * random.normal(1, 0.01, size=20)
    paired, alone = paired_ratio(slow, fast), median_interval(slow)
    assert paired.median == pytest.approx(2.0, rel=0.02)
    assert (paired.high - paired.low) / paired.median < (alone.high - alone.low) / alone.median / 10
    assert paired.count == 20


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "at least one"),
        ([1.0], [1.0, 2.0], "unpaired"),
        ([1.0], [0.0], "positive"),
        ([math.nan], [1.0], "NaN"),
    ],
)
def test_ratios_refuse_what_has_none(a, b, message):
    with pytest.raises(ValueError, match=message):
        paired_ratio(a, b)


def test_spreads_of_a_known_sample():
    assert interquartile_range([1.0, 2.0, 3.0, 4.0, 5.0]) == 2.0
    assert interquartile_range([7.0]) == 0.0


def test_proportion_margin_shrinks_with_the_root_of_the_count():
    assert normal_quantile(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert proportion_margin(0.5, 100) == pytest.approx(2 * proportion_margin(0.5, 400))
    assert proportion_margin(0.5, 0) == math.inf


@pytest.mark.parametrize(("freedom", "published"), [(1, 12.706), (2, 4.303), (10, 2.228), (120, 1.980)])
def test_student_quantiles_are_the_published_ones(freedom, published):
    assert student_quantile(0.95, freedom) == pytest.approx(published, abs=5e-4 * published)


def test_deviation_is_pooled_over_groups_with_repeats_alone():
    assert pooled_deviation([[1.0, 3.0], [10.0, 12.0], [99.0]]) == (pytest.approx(2**0.5), 2)
    assert pooled_deviation([[1.0], [2.0]]) == (0.0, 0)


def test_differences_of_equal_groups_seldom_pass_the_detectable_one():
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(300):
        a, b = random.normal(size=(2, 4))
        wrong += abs(np.median(a) - np.median(b)) > detectable_difference(*pooled_deviation([a, b]), (4, 4))
    assert 0 < wrong / 300 < 0.08


def test_nothing_is_detectable_without_repeats():
    assert detectable_difference(0.0, 0, (1, 1)) == math.inf


def test_a_paired_difference_ignores_what_both_sides_share():
    assert paired_difference([1.0, 5.0, 9.0], [0.0, 4.0, 8.0]) == 0.0
    assert paired_difference([1.0, 2.0], [0.0, 0.0]) == pytest.approx(12.706 * 0.5, rel=1e-3)  # t of 1
