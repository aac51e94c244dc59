"""The written rules of rolling moments: what is refused, constants, recovery, reuse of outputs, threads."""

import pytest
import torch
from torch import Tensor
from windows_oracle import FUNCTIONS, make_series

from windtunnel.errors import SettingsError, UserError
from windtunnel.kernels.windows import rolling_mean, rolling_std

OF_DEVIATION = ("var", "std", "zscore")


@pytest.mark.parametrize("value", [0.1, 1e-30, 123456.789, -1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [1, 3])
def test_windows_of_equal_values_are_exact(value: float, dtype: torch.dtype, columns: int) -> None:
    x_tc = make_series("returns", 4000, columns).to(dtype)
    x_tc[1500:3500] = value
    for moment in OF_DEVIATION:
        assert torch.count_nonzero(FUNCTIONS[moment](x_tc, 30)[1530:3500]) == 0
    assert torch.equal(FUNCTIONS["mean"](x_tc, 30)[1530:3500], x_tc[1530:3500])


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan, 1e30])
@pytest.mark.parametrize("row", [0, 50, 1023, 1500])
@pytest.mark.parametrize("columns", [1, 5])
def test_nothing_remains_of_a_bad_value_once_it_has_left(bad: float, row: int, columns: int) -> None:
    clean = make_series("prices", 2500, columns, seed=row).float()
    x_tc = clean.clone()
    x_tc[row, -1] = bad
    for function in FUNCTIONS.values():
        ours, truth = (function(x, 20) for x in (x_tc, clean))
        assert torch.equal(ours[:, :-1].nan_to_num(9), truth[:, :-1].nan_to_num(9))
        torch.testing.assert_close(ours[row + 20 :, -1], truth[row + 20 :, -1], rtol=1e-6, atol=1e-6, equal_nan=True)


def test_an_infinity_is_a_missing_value() -> None:
    x = torch.arange(60, dtype=torch.float64)
    gap = x.clone()
    x[30], gap[30] = -torch.inf, torch.nan
    for function in FUNCTIONS.values():
        assert torch.equal(function(x, 5, min_periods=2).nan_to_num(9), function(gap, 5, min_periods=2).nan_to_num(9))
    assert FUNCTIONS["zscore"](gap, 5, min_periods=2).isnan().nonzero().flatten().tolist() == [0, 30]


@pytest.mark.parametrize("columns", [1, 13, 70])
def test_threads_do_not_change_a_bit(columns: int) -> None:
    x_tc = make_series("gaps", 9000, columns)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        results.append([function(x_tc, 20, min_periods=2).nan_to_num(9) for function in FUNCTIONS.values()])
    torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize(
    "make", [torch.empty_like, lambda x: torch.empty(7, 300).t(), lambda x: torch.empty(300, 14)[:, ::2]]
)
@pytest.mark.parametrize("x_tc", [torch.randn(300, 7), torch.randn(7, 300).t(), torch.randn(300, 14)[:, ::2]])
@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_an_output_is_used_again_whatever_its_layout(make, x_tc: Tensor, backend: str) -> None:
    out = make(x_tc)
    assert rolling_std(x_tc, 9, out=out, backend=backend) is out
    torch.testing.assert_close(out, rolling_std(x_tc, 9, backend=backend), equal_nan=True)


def test_an_output_within_the_input_is_refused() -> None:
    x_tc = torch.randn(50, 4)
    with pytest.raises(RuntimeError, match="out shares memory with x"):
        rolling_mean(x_tc[1:], 3, out=x_tc[:-1])


def test_an_output_of_another_shape_or_type_is_refused() -> None:
    for out in (torch.empty(9, 2), torch.empty(9, 1).double()):
        with pytest.raises(UserError, match=r"expected \(9, 1\) torch.float32 on cpu: make it with"):
            rolling_mean(torch.zeros(9, 1), 3, out=out)


@pytest.mark.parametrize(
    ("window", "min_periods", "message"),
    [
        (0, None, "rolling_mean: window=0, expected 1 row or more"),
        (-3, 1, "window=-3"),
        (5, 6, "min_periods=6, expected 1 to window=5"),
        (5, 0, "min_periods=0"),
    ],
)
@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_windows_out_of_range_are_refused(window: int, min_periods: int | None, message: str, backend: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rolling_mean(torch.zeros(9, 1), window, min_periods=min_periods, backend=backend)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.tensor(1.0), r"x has shape \(\), expected \(T,\), \(T, C\) or \(B, T, C\): reshape it"),
        (torch.zeros(1, 2, 3, 4), r"shape \(1, 2, 3, 4\)"),
        (torch.zeros(9, 1).int(), "x is torch.int32, expected float32 or float64: convert it first"),
        (torch.zeros(9, 1).half(), "float16"),
    ],
)
def test_another_shape_or_type_is_refused(x: Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rolling_mean(x, 3)


def test_the_operator_itself_refuses_the_same() -> None:
    operator = torch.ops.windtunnel.rolling_mean
    for x, window, least, message in (
        (torch.zeros(9).int(), 3, 1, "float32 or float64"),
        (torch.zeros(9), 0, 1, "window=0"),
        (torch.zeros(9), 3, 4, "min_periods=4"),
        (torch.zeros(1, 1, 1, 1), 3, 1, "4 dimensions"),
    ):
        with pytest.raises(RuntimeError, match=message):
            operator(x, window, least)
