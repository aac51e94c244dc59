"""Rolling moments against pandas and against two passes in float64, over shapes, layouts, types and hard series."""

import pytest
import torch
from windows_oracle import FUNCTIONS, KINDS, find_error, make_series, run_pandas

from windtunnel.kernels.reference_windows import roll_reference

MOMENTS = tuple(FUNCTIONS)
FLOAT32, FLOAT64 = torch.float32, torch.float64


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("columns", [1, 13])
@pytest.mark.parametrize("window", [1, 2, 20, 1500])
def test_values_and_missing_ones_are_those_of_pandas(moment: str, columns: int, window: int) -> None:
    x_tc = make_series("gaps", 1300, columns)
    for min_periods in {1, window // 2 + 1, window}:
        ours = FUNCTIONS[moment](x_tc, window, min_periods=min_periods)
        truth = run_pandas(moment, x_tc, window, min_periods)
        torch.testing.assert_close(ours, truth, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "dtype"), [(1, FLOAT32), (11, FLOAT32), (9, FLOAT64)])
def test_values_are_right_for(moment: str, kind: str, columns: int, dtype: torch.dtype) -> None:
    x_tc = make_series(kind, 1500, columns).to(dtype)
    for window in (5, 48):
        ours = FUNCTIONS[moment](x_tc, window, min_periods=2)
        truth, scale = (roll_reference(moment, x.double(), window, 2) for x in (x_tc, x_tc.abs()))
        if moment == "zscore" and dtype == FLOAT64:
            scale = torch.ones_like(scale)  # of values that are no multiples of anything, none is at the mean exactly
        assert find_error(ours, truth, scale) < (1e-6 if dtype == FLOAT32 else 1e-7)


@pytest.mark.parametrize(
    "shape", [(0,), (1,), (7,), (0, 3), (5, 0), (1, 4), (2, 0, 3), (0, 5, 2), (3, 1, 2), (3, 50, 2)]
)
def test_every_shape_gives_its_own_shape(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    for moment, function in FUNCTIONS.items():
        ours = function(x, 3, min_periods=1)
        assert ours.shape == x.shape
        torch.testing.assert_close(ours, roll_reference(moment, x, 3, 1), rtol=1e-5, atol=1e-6, equal_nan=True)


def list_layouts(x_btc: torch.Tensor) -> dict[str, torch.Tensor]:
    wide = torch.stack((x_btc, -x_btc), -1)
    return {
        "time last": x_btc.transpose(1, 2).contiguous().transpose(1, 2),
        "batch within": x_btc.transpose(0, 1).contiguous().transpose(0, 1),
        "every other column": wide.flatten(2)[..., ::2],
        "some columns": torch.cat((x_btc, x_btc), 2)[..., : x_btc.shape[2]],
        "some rows": x_btc.repeat_interleave(2, 1)[:, ::2],
        "backwards": x_btc.flip(2).flip(2),
        "one batch repeated": x_btc[:1].expand(3, -1, -1),
    }


@pytest.mark.parametrize("columns", [1, 4, 70])
def test_layout_in_memory_does_not_matter(columns: int) -> None:
    x_btc = make_series("prices", 3 * 60, columns).reshape(3, 60, columns)
    for name, x in list_layouts(x_btc).items():
        for moment, function in FUNCTIONS.items():
            truth = roll_reference(moment, x.contiguous(), 12, 5)
            message = f"{moment}, {name}"
            torch.testing.assert_close(
                function(x, 12, min_periods=5), truth, rtol=1e-8, atol=1e-8, equal_nan=True, msg=message
            )


@pytest.mark.parametrize("columns", [1, 5])
def test_a_batch_is_as_good_as_its_parts(columns: int) -> None:
    x_btc = make_series("gaps", 4 * 150, columns).reshape(4, 150, columns)
    ours = FUNCTIONS["std"](x_btc, 9, min_periods=3)
    for x_tc, alone in zip(x_btc, ours, strict=True):
        assert torch.equal(FUNCTIONS["std"](x_tc, 9, min_periods=3).nan_to_num(-1), alone.nan_to_num(-1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_window_of_many_thousand_rows_is_right(moment: str) -> None:
    x_tc = make_series("prices", 30_000, 1)
    x_tc[7000], x_tc[9000:9050] = 1e12, torch.nan
    ours = FUNCTIONS[moment](x_tc, 5000, min_periods=2)
    for row in (4999, 7000, 11_999, 12_000, 14_049, 29_999):
        values = x_tc[row - 4999 : row + 1, 0]
        values = values[values.isfinite()]
        score = (x_tc[row, 0] - values.mean()) / values.std()
        truth = (values.mean(), values.sum(), values.var(), values.std(), score)[MOMENTS.index(moment)]
        torch.testing.assert_close(ours[row, 0], truth, rtol=1e-8, atol=1e-8)
