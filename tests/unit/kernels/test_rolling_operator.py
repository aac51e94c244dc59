"""The operator as PyTorch sees it: schema, fake implementation, compiler, autograd."""

import pytest
import torch

from windtunnel.errors import UserError
from windtunnel.kernels.rolling import rolling_moments

OPERATOR = torch.ops.windtunnel.rolling_moments.default


def test_operator_passes_every_check_of_pytorch() -> None:
    torch.library.opcheck(OPERATOR, (torch.empty(0, 3), [5, 20]), {"min_periods": 2, "threads": 2})


# Without the comparison of compiled and eager values: it does not take NaN as equal, and there is always one.
@pytest.mark.parametrize("x_tc", [torch.randn(40, 3), torch.randn(3, 40, dtype=torch.float64).t()])
def test_operator_passes_the_checks_on_real_rows(x_tc: torch.Tensor) -> None:
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(OPERATOR, (x_tc, [5, 20]), {"min_periods": 2}, test_utils=checks)


def test_compiled_graph_gives_what_eager_does() -> None:
    def run(x_tc: torch.Tensor) -> torch.Tensor:
        return 2 * rolling_moments(x_tc, [5, 7], min_periods=3).nan_to_num(0.0)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (30, 41):
        x_tc = torch.randn(rows, 2)
        assert torch.equal(compiled(x_tc), run(x_tc))


def test_backward_is_refused_rather_than_zero() -> None:
    moments = rolling_moments(torch.randn(20, 2, requires_grad=True), [5], min_periods=1)
    with pytest.raises(UserError, match="no derivative"):
        moments[..., 0].sum().backward()
