import math

import numpy as np
import pytest

from windtunnel.errors import InputFileError
from windtunnel.tasks.targets import VOLATILITY_FLOOR, make_targets


def _walk(rows=60):
    return np.exp(np.cumsum(0.01 * np.random.default_rng(0).standard_normal(rows)))


def test_targets_are_what_the_definition_says_row_by_row():
    price, horizon = _walk(), 4
    targets = make_targets(price, horizon=horizon)
    assert len(targets.up) == len(targets.log_volatility) == len(price) - horizon
    for t in range(len(price) - horizon):
        returns = [math.log(price[s] / price[s - 1]) for s in range(t + 1, t + horizon + 1)]
        assert targets.up[t] == (returns[0] > 0)
        expected = 0.5 * math.log(sum(r * r for r in returns) / horizon)
        assert targets.log_volatility[t] == pytest.approx(expected, rel=1e-5)


def test_a_target_depends_on_the_next_rows_alone():
    price, horizon = _walk(), 4
    before = make_targets(price, horizon=horizon)
    changed = price.copy()
    changed[31:] = 1 / changed[31:]
    after = make_targets(changed, horizon=horizon)
    unaffected = 30 - horizon  # the last row whose horizon ends at row 30
    assert np.array_equal(before.log_volatility[: unaffected + 1], after.log_volatility[: unaffected + 1])
    assert before.log_volatility[unaffected + 1] != after.log_volatility[unaffected + 1]
    assert np.array_equal(before.up[:30], after.up[:30])


def test_a_price_that_stands_still_has_the_floor_and_is_not_up():
    targets = make_targets(np.full(20, 57.5), horizon=5)
    assert not targets.up.any()
    assert np.allclose(targets.log_volatility, math.log(VOLATILITY_FLOOR))


@pytest.mark.parametrize("bad", [0.0, -37.63, math.nan, math.inf])
def test_a_price_without_a_logarithm_is_refused_with_its_row(bad):
    price = _walk()
    price[11] = bad
    with pytest.raises(InputFileError, match="price at row 11 is"):
        make_targets(price, horizon=3)


def test_fewer_rows_than_the_horizon_are_refused():
    with pytest.raises(InputFileError, match=r"3 rows of price are not more than task.horizon = 5"):
        make_targets(np.ones(3), horizon=5)
