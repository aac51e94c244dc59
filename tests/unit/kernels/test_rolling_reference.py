"""The kernel against two passes in float64, over shapes, types, windows and hard series."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from windtunnel.kernels.reference import rolling_moments_reference
from windtunnel.kernels.rolling import rolling_moments

ROWS = 2100  # more than two blocks of 1024
FLOAT32, FLOAT64 = torch.float32, torch.float64


def make_returns(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, dtype=FLOAT64)


def make_prices(rows: int, columns: int) -> Tensor:
    return 100 + 0.01 * make_returns(rows, columns).cumsum(0)


def make_huge_prices(rows: int, columns: int) -> Tensor:
    return 1e9 + 1e-3 * make_returns(rows, columns).cumsum(0)


def make_spikes(rows: int, columns: int) -> Tensor:
    x = make_returns(rows, columns) + 5
    x[torch.rand(rows, columns) < 0.002] = 1e10
    x[torch.rand(rows, columns) < 0.002] = -3e14
    return x


def make_plateaus(rows: int, columns: int) -> Tensor:
    return 0.1 * (2 * make_returns(rows, columns)).round().repeat_interleave(9, 0)[:rows] + 47


def make_gaps(rows: int, columns: int) -> Tensor:
    x = make_returns(rows, columns) + 5
    x[torch.rand(rows, columns) < 0.3] = torch.nan
    x[torch.rand(rows, columns) < 0.002] = torch.inf
    x[torch.rand(rows, columns) < 0.001] = -torch.inf
    return x


def make_trend(rows: int, columns: int) -> Tensor:
    return 1e3 * torch.arange(rows, dtype=FLOAT64)[:, None] + 1e-3 * make_returns(rows, columns)


MAKERS = (make_returns, make_prices, make_huge_prices, make_spikes, make_plateaus, make_gaps, make_trend)


def find_error(x_tc: Tensor, windows: list[int], min_periods: int) -> float:
    """The largest error relative to the truth, or to the values' scale where the truth is tiny."""
    ours = rolling_moments(x_tc, windows, min_periods=min_periods).double()
    truth = rolling_moments_reference(x_tc.double(), windows, min_periods=min_periods)
    assert torch.equal(ours.isnan(), truth.isnan())
    scale = rolling_moments_reference(x_tc.double().abs(), windows, min_periods=min_periods)[..., :1].abs()
    tiny = torch.cat((1e-6 * scale, torch.zeros_like(scale), torch.full_like(scale, 1e-5)), -1)
    error = (ours - truth).abs() / torch.maximum(truth.abs(), tiny)
    return float(error.where(ours != truth, 0.0).nan_to_num(0.0).max())


@pytest.mark.parametrize(("columns", "dtype"), [(5, FLOAT32), (1, FLOAT64), (4, FLOAT64)])
@pytest.mark.parametrize("make", MAKERS)
def test_moments_are_right_for(make: Callable[[int, int], Tensor], columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(columns)
    x_tc = make(ROWS, columns).to(dtype)
    assert find_error(x_tc, [12, 2, 5], 2) < (1e-6 if dtype == FLOAT32 else 1e-7)


@pytest.mark.parametrize("rows", [1, 2, 5, 1024, 1025])
@pytest.mark.parametrize("windows", [[1], [3, 40], [600]])
def test_moments_are_right_whatever_the_rows_and_windows(rows: int, windows: list[int]) -> None:
    torch.manual_seed(rows)
    assert find_error(make_gaps(rows, 2).float(), windows, 1) < 1e-6


@pytest.mark.parametrize("min_periods", [1, 2, 7, 20])
def test_min_periods_is_kept(min_periods: int) -> None:
    torch.manual_seed(min_periods)
    x_tc = make_gaps(300, 5)
    assert find_error(x_tc, [20, 30], min_periods) < 1e-9


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (0, 0)])
def test_no_rows_or_no_columns_give_an_empty_result(shape: tuple[int, int]) -> None:
    assert rolling_moments(torch.empty(shape), [2, 3], min_periods=1).shape == (*shape, 2, 3)


def test_a_window_longer_than_shared_sums_allow_is_right() -> None:
    torch.manual_seed(0)
    x_tc = make_prices(30_000, 2)
    x_tc[7000] = 1e12
    x_tc[9000:9050] = torch.nan
    moments = rolling_moments(x_tc, [5000, 10], min_periods=2, threads=2)[:, :, 0]
    for row in (4999, 7000, 11_999, 12_000, 20_000, 29_999):
        window = x_tc[row - 4999 : row + 1]
        for column in range(2):
            values = window[:, column][window[:, column].isfinite()]
            torch.testing.assert_close(moments[row, column, 0], values.mean(), rtol=1e-12, atol=0)
            torch.testing.assert_close(moments[row, column, 1], values.std(), rtol=1e-8, atol=0)


def test_rows_that_are_not_contiguous_give_the_same() -> None:
    x_ct = torch.randn(7, 200)
    assert torch.equal(
        rolling_moments(x_ct.t(), [5], min_periods=5).nan_to_num(9),
        rolling_moments(x_ct.t().contiguous(), [5], min_periods=5).nan_to_num(9),
    )
