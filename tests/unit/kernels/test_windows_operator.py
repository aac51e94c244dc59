"""Rolling moments as PyTorch sees them: schema, fake implementation, compiler, derivatives, both namespaces."""

from functools import partial

import pytest
import torch
from windows_oracle import FUNCTIONS, make_series

from windtunnel.kernels.backend import choose_backend
from windtunnel.kernels.windows import rolling_mean, rolling_zscore

MOMENTS = tuple(FUNCTIONS)
BACKENDS = ("cpp", "reference")
QUICK_CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")


# Without NaN, which the checks do not take as equal: windows of one row, or an empty series. They compile graphs, and
# that takes seconds, so that two operators stand for the five of one template.
@pytest.mark.parametrize(
    ("moment", "x", "window"), [("mean", torch.randn(2, 9, 3), 1), ("zscore", torch.empty(0, 3), 5)]
)
def test_operator_passes_every_check_of_pytorch(moment: str, x: torch.Tensor, window: int) -> None:
    operator = getattr(torch.ops.windtunnel, f"rolling_{moment}")
    torch.library.opcheck(operator.default, (x.requires_grad_(), window, 1))
    torch.library.opcheck(
        operator.out, (x.detach(), window, 1), {"out": torch.zeros_like(x)}, test_utils=QUICK_CHECKS
    )


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_twin_in_plain_pytorch_passes_the_quick_checks(moment: str) -> None:
    operator = getattr(torch.ops.windtunnel_reference, f"rolling_{moment}")
    x_tc = torch.randn(30, 3)
    torch.library.opcheck(operator.default, (x_tc.requires_grad_(), 5, 1), test_utils=QUICK_CHECKS)


@pytest.mark.parametrize("moment", MOMENTS)
def test_fake_results_have_the_layout_of_true_ones(moment: str) -> None:
    operator = getattr(torch.ops.windtunnel, f"rolling_{moment}").default
    for x in (torch.randn(3, 40).t(), torch.randn(40, 9)[:, ::2], torch.randn(2, 40, 6)[..., :3], torch.randn(40, 1)):
        torch.library.opcheck(operator, (x, 5, 2), test_utils=("test_schema", "test_faketensor"))


def test_a_compiled_graph_gives_what_eager_does() -> None:
    def run(x_tc: torch.Tensor) -> torch.Tensor:
        return 2 * rolling_zscore(x_tc, 7, min_periods=3).nan_to_num(0.0) + rolling_mean(x_tc, 5, min_periods=1)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (30, 41):
        x_tc = torch.randn(rows, 2, requires_grad=True)
        assert torch.equal(compiled(x_tc), run(x_tc))
    compiled(x_tc).sum().backward()
    compiled_gradient, x_tc.grad = x_tc.grad, None
    run(x_tc).sum().backward()
    torch.testing.assert_close(compiled_gradient, x_tc.grad)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_are_right(moment: str, backend: str) -> None:
    torch.manual_seed(1)
    x_btc = (100 + torch.randn(2, 6, 2, dtype=torch.float64)).requires_grad_()
    run = partial(FUNCTIONS[moment], window=4, min_periods=2, backend=backend)
    assert torch.autograd.gradcheck(lambda x_btc: run(x_btc)[:, 1:], x_btc, rtol=1e-4)


@pytest.mark.parametrize("moment", MOMENTS)
def test_second_derivatives_are_right(moment: str) -> None:
    torch.manual_seed(1)
    x = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: FUNCTIONS[moment](x, 3, min_periods=2)[1:], x, rtol=1e-3)


@pytest.mark.parametrize("moment", MOMENTS)
def test_missing_and_equal_values_have_finite_derivatives(moment: str) -> None:
    x_tc = make_series("gaps", 200, 2)
    x_tc[50:90] = 3.0
    x_tc.requires_grad_()
    y_tc = FUNCTIONS[moment](x_tc, 6, min_periods=3)
    y_tc.where(y_tc.isfinite(), 0.0).sum().backward()
    assert x_tc.grad is not None
    assert x_tc.grad.isfinite().all()
    assert torch.count_nonzero(x_tc.grad[~x_tc.isfinite()]) == 0


def test_the_compiled_library_is_chosen_where_there_is_one() -> None:
    assert choose_backend("reference") == "reference"
    assert choose_backend("auto") == choose_backend("cpp") == "cpp"
