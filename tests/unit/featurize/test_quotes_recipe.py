from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.featurize.quotes import build_quotes, find_book

NAN = np.nan


def make_quotes(rows: list[tuple[int, float, int, float, int]]) -> dict[str, NDArray[Any]]:
    time_ns, bid, bid_size, ask, ask_size = zip(*rows, strict=True)
    return {
        "time_ns": np.array(time_ns),
        "bid_price": np.array(bid),
        "bid_size": np.array(bid_size),
        "ask_price": np.array(ask),
        "ask_size": np.array(ask_size),
    }


def test_each_side_keeps_its_last_price_and_size() -> None:
    rows = [(1, 10.0, 5, NAN, 0), (2, NAN, 0, 11.0, 7), (3, NAN, 0, 12.0, 8), (4, 10.5, 6, NAN, 0)]
    book = find_book("x", make_quotes(rows))
    np.testing.assert_array_equal(book.time_ns, [2, 3, 4])
    np.testing.assert_array_equal(book.bid, [10, 10, 10.5])
    np.testing.assert_array_equal(book.bid_size, [5, 5, 6])
    np.testing.assert_array_equal(book.ask, [11, 12, 12])
    np.testing.assert_array_equal(book.ask_size, [7, 8, 8])


def test_of_several_rows_at_one_moment_the_last_state_stands() -> None:
    rows = [(1, 10.0, 5, NAN, 0), (1, NAN, 0, 11.0, 7), (1, 10.5, 6, NAN, 0), (2, 10.6, 1, NAN, 0)]
    book = find_book("x", make_quotes(rows))
    np.testing.assert_array_equal(book.time_ns, [1, 2])
    np.testing.assert_array_equal(book.bid, [10.5, 10.6])


def test_signals_are_the_books_own_arithmetic() -> None:
    rows = [(0, 10.0, 30, 10.2, 10), (2_000_000, 10.1, 0, 10.3, 0)]
    table = build_quotes("x", make_quotes(rows))
    found = {signal.name: signal.values[1] for signal in table.signals}
    expected = {
        "x.mid.logret": 1e4 * np.log(10.2 / 10.1),
        "x.spread": 1e4 * np.log(10.3 / 10.1),
        "x.imbalance": 0.0,
        "x.interval.log": np.log(3),
        "x.mid.log": 1e4 * np.log(10.2),
    }
    assert found == pytest.approx(expected)
    assert table.signals[2].values[0] == 0.5
    np.testing.assert_allclose(table.price, [10.1, 10.2])


def test_quotes_that_never_have_both_sides_are_refused_by_name() -> None:
    with pytest.raises(InputFileError, match="'aig_quote' never have both a bid and an offer in 2 rows"):
        build_quotes("aig_quote", make_quotes([(1, 10.0, 5, NAN, 0), (2, 10.1, 5, NAN, 0)]))
