"""The written rules of rolling moments, and pandas as their oracle where it has the same ones."""

import ctypes

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from windtunnel.errors import SettingsError, UserError
from windtunnel.kernels.rolling import rolling_moments
from windtunnel.native.library import load_library


def make_pandas_moments(x: Tensor, window: int, min_periods: int) -> Tensor:
    series = pd.Series(x.numpy())
    rolling = series.rolling(window, min_periods=min_periods)
    mean, std = rolling.mean(), rolling.std()
    return torch.from_numpy(np.stack([mean, std, (series - mean) / std], axis=-1))


@pytest.mark.parametrize("min_periods", [1, 2, 5, 12])
@pytest.mark.parametrize("window", [12, 40])
def test_moments_and_their_nan_are_those_of_pandas(window: int, min_periods: int) -> None:
    torch.manual_seed(window)
    x = torch.randn(3000, dtype=torch.float64)
    x[torch.rand(3000) < 0.4] = torch.nan
    ours = rolling_moments(x[:, None], [window], min_periods=min_periods)[:, 0, 0]
    torch.testing.assert_close(
        ours, make_pandas_moments(x, window, min_periods), rtol=1e-9, atol=1e-9, equal_nan=True
    )


@pytest.mark.parametrize("value", [0.1, 1e-30, 123456.789, -1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_values_have_their_own_mean_no_deviation_and_no_score(value: float, dtype: torch.dtype) -> None:
    x_tc = torch.randn(4000, 3, dtype=dtype)
    x_tc[1500:3500] = value
    moments = rolling_moments(x_tc, [30, 7], min_periods=2)[1530:3500]
    assert torch.equal(moments[..., 0], torch.full_like(moments[..., 0], x_tc[1600, 0]))
    assert torch.count_nonzero(moments[..., 1:]) == 0


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("row", [0, 50, 1023, 1500])
def test_nothing_remains_of_a_value_that_is_not_finite(bad: float, row: int) -> None:
    torch.manual_seed(row)
    clean = torch.randn(2500, 5)
    x_tc = clean.clone()
    x_tc[row, 2] = bad
    ours, truth = (rolling_moments(x, [8, 20], min_periods=8) for x in (x_tc, clean))
    assert torch.equal(ours[:, [0, 1, 3, 4]].nan_to_num(9), truth[:, [0, 1, 3, 4]].nan_to_num(9))
    after = row + 27
    torch.testing.assert_close(ours[after:, 2], truth[after:, 2], rtol=1e-6, atol=1e-6)


def test_an_infinity_makes_its_windows_nan_and_a_nan_only_its_own_score() -> None:
    x_tc = torch.arange(60, dtype=torch.float64)[:, None].repeat(1, 2)
    x_tc[30, 0], x_tc[30, 1] = torch.inf, torch.nan
    moments = rolling_moments(x_tc, [5], min_periods=2)[:, :, 0]
    assert moments[30:35, 0].isnan().all()
    assert not moments[35:, 0].isnan().any()
    assert moments[30:35, 1].isnan().nonzero().tolist() == [[0, 2]]


def test_windows_after_a_spike_are_as_if_it_had_not_been() -> None:
    torch.manual_seed(0)
    clean = 50 + torch.randn(3000, 1, dtype=torch.float64)
    x_tc = clean.clone()
    x_tc[::500] = 1e12
    moments, truth = (rolling_moments(x, [20], min_periods=2)[:, 0, 0] for x in (x_tc, clean))
    untouched = torch.arange(3000) % 500 >= 20
    torch.testing.assert_close(moments[untouched, :2], truth[untouched, :2], rtol=1e-8, atol=0)


@pytest.mark.parametrize("columns", [1, 13])
def test_threads_do_not_change_a_bit(columns: int) -> None:
    x_tc = torch.randn(9000, columns)
    x_tc[torch.rand(9000, columns) < 0.01] = torch.nan
    first, *others = (rolling_moments(x_tc, [5, 5000], min_periods=2, threads=count) for count in (1, 2, 3, 64))
    assert all(torch.equal(first.view(torch.int32), other.view(torch.int32)) for other in others)


@pytest.mark.parametrize(("name", "number"), [("baseline", 1), ("avx2", 2), ("avx512", 3)])
def test_every_instruction_set_gives_the_same_bits(name: str, number: int) -> None:
    x_tc = 100 + torch.randn(5000, 11).cumsum(0)
    x_tc[torch.rand(5000, 11) < 0.0001] = torch.nan
    x_tc[700] = 1e10
    windows = (ctypes.c_int64 * 2)(8, 90)
    out = torch.empty(5000, 11, 2, 3)
    arguments = (x_tc.data_ptr(), out.data_ptr(), 5000, 11, windows, 2, 2, 1, number)
    code = load_library().windtunnel_rolling_moments_f32(*arguments)
    if code == 2:
        pytest.skip(f"this processor has no {name}")
    best = rolling_moments(x_tc, [8, 90], min_periods=2)
    assert torch.equal(out.view(torch.int32), best.view(torch.int32))


@pytest.mark.parametrize(
    ("windows", "min_periods", "threads", "message"),
    [
        ([], 1, 1, r"windows \[\]"),
        ([0], 1, 1, r"windows \[0\]"),
        ([5, 20], 6, 1, "min_periods=6: expected 1 to 5"),
        ([5], 0, 1, "min_periods=0"),
        ([5], 1, 0, "threads=0"),
    ],
)
def test_arguments_out_of_range_are_refused(windows: list[int], min_periods: int, threads: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rolling_moments(torch.zeros(9, 1), windows, min_periods=min_periods, threads=threads)


@pytest.mark.parametrize(("x", "message"), [(torch.zeros(9), r"shape \(9,\)"), (torch.zeros(9, 1).int(), "int32")])
def test_another_shape_or_type_is_refused(x: Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rolling_moments(x, [3], min_periods=1)
