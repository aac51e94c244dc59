import pytest

from windtunnel.perfmodel.legality import TRANSFORMER, find_tensor_refusal
from windtunnel.settings.model import ModelSettings


def _find(tensor, *, window=12, **args):
    return find_tensor_refusal(ModelSettings(name="m", target=TRANSFORMER, args=args), window=window, tensor=tensor)


def test_ranks_that_divide_heads_and_rows_are_not_refused():
    assert [_find(1, heads=3), _find(2), _find(4), _find(3, heads=6)] == [""] * 4


@pytest.mark.parametrize(
    ("tensor", "sizes", "reason"),
    [
        (
            3,
            {},
            "3 tensor-parallel ranks do not divide the 4 heads of model 'm': set parallelism.tensor=2, or model.args",
        ),
        (8, {"heads": 4}, "8 tensor-parallel ranks do not divide the 4 heads of model 'm': set parallelism.tensor=4"),
        (4, {"window": 10}, "4 tensor-parallel ranks do not divide the 10 rows of a window of model 'm': set paral"),
    ],
)
def test_ranks_that_do_not_are_refused_with_the_numbers(tensor, sizes, reason):
    assert _find(tensor, **sizes).startswith(reason)


def test_a_model_without_a_form_is_refused():
    other = ModelSettings(name="tcn", target="windtunnel.models.tcn.TCN")
    assert find_tensor_refusal(other, window=12, tensor=2).startswith("model 'tcn' has no tensor-parallel form")
