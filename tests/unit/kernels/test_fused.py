"""Fused features are the rolling moments that they are named after, in one pass, and in a stream."""

from collections.abc import Sequence

import pytest
import torch
from test_stream import cut
from windows_oracle import KINDS, find_error, make_series

from windtunnel.errors import SettingsError, UserError
from windtunnel.kernels.fused import Feature, fused_features
from windtunnel.kernels.fused_stream import begin, update
from windtunnel.kernels.reference_windows import roll_reference
from windtunnel.kernels.windows import MOMENTS
from windtunnel.settings.kernels import Backend

FEATURES = tuple(Feature(moment, window, 2) for window in (3, 20, 300) for moment in MOMENTS)
FEW = (Feature("zscore", 5, 2), Feature("mean", 3), Feature("mean", 3), Feature("std", 5, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "dtype"), [(1, torch.float32), (11, torch.float32), (9, torch.float64)])
def test_every_feature_is_right_for(kind: str, columns: int, dtype: torch.dtype) -> None:
    x_tc = make_series(kind, 2300, columns).to(dtype)
    for feature, ours in zip(FEATURES, fused_features(x_tc, FEATURES), strict=True):
        truth, scale = (roll_reference(feature.moment, x.double(), feature.window, 2) for x in (x_tc, x_tc.abs()))
        if feature.moment == "zscore" and dtype == torch.float64:
            scale = torch.ones_like(scale)  # of values that are no multiples of anything, none is at the mean exactly
        assert find_error(ours, truth, scale) < (1e-6 if dtype == torch.float32 else 1e-7), feature


@pytest.mark.parametrize(
    "shape", [(0,), (1,), (7,), (0, 3), (5, 0), (1, 4), (2, 0, 3), (3, 1, 2), (3, 50, 2), (2, 40, 9)]
)
def test_every_shape_gives_planes_of_its_own_shape(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    ours = fused_features(x, FEW)
    assert ours.shape == (len(FEW), *shape)
    for feature, plane in zip(FEW, ours, strict=True):
        least = feature.min_periods or feature.window
        truth = roll_reference(feature.moment, x, feature.window, least)
        torch.testing.assert_close(plane, truth, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_layouts_and_outputs_that_are_used_again_change_nothing() -> None:
    x_btc = torch.randn(2, 500, 3)
    truth = fused_features(x_btc, FEW)
    out = torch.empty_like(truth)
    for x in (x_btc, x_btc.transpose(0, 2).contiguous().transpose(0, 2), x_btc.repeat(1, 1, 2)[..., :3]):
        assert fused_features(x, FEW, out=out) is out
        assert torch.equal(out.nan_to_num(9), truth.nan_to_num(9))
        out.zero_()


def test_results_beyond_the_cache_are_those_within_it() -> None:
    x = torch.randn(2_100_000, dtype=torch.float64)
    features = (Feature("mean", 8), Feature("std", 8), Feature("zscore", 8), Feature("var", 8))  # 64 MiB
    fused = fused_features(x, features)[:, 2_000_000:2_001_000]
    for feature, plane in zip(features, fused, strict=True):
        truth = roll_reference(feature.moment, x[1_999_990:2_001_000], 8, 8)[10:]
        torch.testing.assert_close(plane, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 11])
def test_pieces_give_the_bits_of_the_whole(kind: str, columns: int) -> None:
    for dtype in (torch.float32, torch.float64):
        x_tc = make_series(kind, 2600, columns, seed=columns).to(dtype)
        pieces = run_stream(FEATURES, x_tc, cut(2600, columns), backend="cpp")
        assert torch.equal(pieces.nan_to_num(9), fused_features(x_tc, FEATURES, backend="cpp").nan_to_num(9))


def test_the_reference_is_streamed_as_well() -> None:
    x_btc = make_series("gaps", 3 * 400, 5).reshape(3, 400, 5)
    pieces = run_stream(FEW, x_btc, cut(400, 1), backend="reference")
    assert torch.equal(pieces.nan_to_num(9), fused_features(x_btc, FEW, backend="reference").nan_to_num(9))


def run_stream(features: Sequence[Feature], x: torch.Tensor, sizes: list[int], *, backend: Backend) -> torch.Tensor:
    state, results = begin(features, backend=backend), []
    for piece in x.split(sizes, -2):
        state, result = update(state, piece)
        results.append(result)
    return torch.cat(results, -2)


def test_a_row_at_a_time_and_threads_change_nothing() -> None:
    x_tc = make_series("ticks", 1200, 2)
    state, _ = update(begin(FEATURES), x_tc[:1150])
    whole = fused_features(x_tc, FEATURES)
    for row in range(1150, 1200):
        state, result = update(state, x_tc[row : row + 1])
        assert torch.equal(result[:, 0].nan_to_num(9), whole[:, row].nan_to_num(9))
    with pytest.raises(UserError, match="cannot follow"):
        update(state, x_tc[:3, :1])


@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_derivatives_are_right(backend: str) -> None:
    torch.manual_seed(1)
    x_tc = (100 + torch.randn(6, 2, dtype=torch.float64)).requires_grad_()
    features = [Feature(moment, window, 2) for moment in MOMENTS for window in (3, 4)]
    assert torch.autograd.gradcheck(
        lambda x_tc: fused_features(x_tc, features, backend=backend)[:, 1:], x_tc, rtol=1e-4
    )


def test_operator_passes_every_check_of_pytorch() -> None:
    x = torch.randn(2, 9, 3)
    arguments = ([0, 1, 0], [1, 4, 4], [1, 1, 1])
    torch.library.opcheck(torch.ops.windtunnel.fused_features.default, (x.requires_grad_(), *arguments))
    quick = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(
        torch.ops.windtunnel.fused_features.out,
        (x.detach(), *arguments),
        {"out": torch.zeros(3, 2, 9, 3)},
        test_utils=quick,
    )
    torch.library.opcheck(torch.ops.windtunnel_reference.fused_features.default, (x, *arguments), test_utils=quick)


def test_a_compiled_graph_gives_what_eager_does() -> None:
    def run(x_tc: torch.Tensor) -> torch.Tensor:
        return fused_features(x_tc, FEW).nan_to_num(0.0).sum(0)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (30, 41):
        x_tc = torch.randn(rows, 2)
        assert torch.equal(compiled(x_tc), run(x_tc))


@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_what_cannot_be_computed_is_refused_with_the_reason(backend: str) -> None:
    x = torch.zeros(9)
    with pytest.raises(SettingsError, match="no features: name one or more"):
        fused_features(x, (), backend=backend)
    with pytest.raises(SettingsError, match="moment 'median', expected one of mean, sum"):
        fused_features(x, [Feature("median", 3)], backend=backend)
    with pytest.raises(SettingsError, match="min_periods=4, expected 1 to window=3"):
        fused_features(x, [Feature("mean", 3, 4)], backend=backend)
    with pytest.raises(UserError, match=r"torch.int64, expected float32 or float64"):
        fused_features(x.long(), FEW, backend=backend)
    with pytest.raises(UserError, match=r"out is \(3, 9\) .* expected \(4, 9\)"):
        fused_features(x, FEW, out=torch.zeros(3, 9), backend=backend)


def test_an_output_over_its_input_is_refused() -> None:
    memory = torch.zeros(5, 9)
    with pytest.raises(RuntimeError, match="out shares memory with x"):
        fused_features(memory[0], FEW, out=memory[:4])
    with pytest.raises(RuntimeError, match="moment=7: expected 0 to 4"):
        torch.ops.windtunnel.fused_features(memory[0], [7], [3], [3])
