import numpy as np
import pytest

from windtunnel.errors import InputFileError
from windtunnel.featurize.daily import DAY_NS, Series, build_daily, make_series

NAN = np.nan


def make_simple(name: str, day: list[int], value: list[float]) -> Series:
    return Series(name, np.array(day, dtype=np.int64), {"value": np.array(value)})


def test_other_series_stand_at_their_last_value_of_the_day_or_before() -> None:
    reference = make_simple("index", [3, 4, 7, 8], [1.0, 2.0, 3.0, 4.0])
    other = make_simple("oil", [2, 5, 8], [np.e, np.e**2, np.e**3])
    table = build_daily(reference, (other,))
    levels = {signal.name: signal.values for signal in table.signals}
    np.testing.assert_allclose(levels["oil.value.log"], [100, 100, 200, 300])
    np.testing.assert_allclose(levels["oil.value.logret"], [NAN, 0, 100, 100])
    assert [signal.name.split(".")[0] for signal in table.signals[: table.owned]] == ["index", "index"]


def test_days_without_a_price_above_zero_are_no_rows() -> None:
    table = build_daily(make_simple("oil", [1, 2, 3, 4], [5.0, NAN, -37.6, 6.0]), ())
    np.testing.assert_array_equal(table.time_ns, np.array([1, 4]) * DAY_NS)
    np.testing.assert_array_equal(table.price, [5, 6])


def test_a_bar_gives_return_level_range_and_volume_of_its_close() -> None:
    bar = {
        "open": np.array([9.0, 9.0]),
        "high": np.array([10.0, 11.0]),
        "low": np.array([10.0, 10.0]),
        "close": np.array([10.0, 11.0]),
        "volume": np.array([0.0, 99.0]),
    }
    table = build_daily(Series("index", np.array([1, 2]), bar), ())
    found = {signal.name: signal.values[1] for signal in table.signals}
    step = 100 * np.log(1.1)
    expected = {
        "index.close.logret": step,
        "index.close.log": 100 * np.log(11),
        "index.range.log": step,
        "index.volume.log": np.log(100),
    }
    assert found == pytest.approx(expected)


def test_several_rows_on_a_day_are_refused_by_name() -> None:
    times = np.array([0, 1, DAY_NS])
    with pytest.raises(InputFileError, match="'aig_quote' has several rows on one day"):
        make_series("aig_quote", {"time_ns": times, "bid_price": np.ones(3)})


def test_a_reference_without_any_price_is_refused_by_name() -> None:
    with pytest.raises(InputFileError, match="'oil' has no price above zero"):
        build_daily(make_simple("oil", [1, 2], [NAN, -1.0]), ())


def test_a_shard_without_numbers_is_refused_by_name() -> None:
    with pytest.raises(InputFileError, match="'notes' has no numeric column"):
        make_series("notes", {"time_ns": np.array([0]), "text": np.array([b"x"])})


def test_a_reference_of_several_columns_without_a_close_is_refused() -> None:
    bar = Series("adj", np.array([1, 2]), {"open": np.ones(2), "last": np.ones(2)})
    with pytest.raises(InputFileError, match="'adj' has columns open, last and no close, so that its price is not"):
        build_daily(bar, ())
