import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from windtunnel.models.build import build_model
from windtunnel.models.count import count_step
from windtunnel.perfmodel.flops import count_flops, count_levels
from windtunnel.settings.model import ModelSettings

SIZES = {"n_features": 5, "n_outputs": 2, "window": 12}
TCN = "windtunnel.models.tcn.TCN"
TRANSFORMER = "windtunnel.models.transformer.CausalTransformer"
CASES = {
    "tcn": (TCN, {}),
    "tcn-wide": (TCN, {"channels": 48, "kernel": 5, "levels": 3, "dropout": 0.1}),
    "transformer": (TRANSFORMER, {}),
    "transformer-deep": (TRANSFORMER, {"width": 24, "heads": 2, "layers": 5, "dropout": 0.1}),
}


def _settings(case):
    target, args = CASES[case]
    return ModelSettings(name="m", target=target, args=args)


@pytest.mark.parametrize("case", CASES)
def test_a_formula_agrees_with_torchs_counter_forward_and_backward(case):
    model = build_model(_settings(case), **SIZES)
    count = count_flops(_settings(case), **SIZES)
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward:
            loss = model(torch.randn(3, 12, 5)).sum()
        with FlopCounterMode(display=False) as backward:
            loss.backward()
    assert (3 * count.forward, 3 * count.backward) == (forward.get_total_flops(), backward.get_total_flops())
    assert 3 * count.model == 3 * count_step(_settings(case), **SIZES)


def test_a_model_of_another_has_no_formula_and_is_counted():
    linear = ModelSettings(name="m", target="test_flops.Last", args={})
    assert count_flops(linear, **SIZES) is None
    assert count_step(linear, **SIZES) == 2 * 2 * 5 * 2  # forward and the weight's gradient; the input needs none


def test_a_model_that_looks_at_values_is_unknown():
    assert count_step(ModelSettings(name="m", target="test_flops.Looks", args={}), **SIZES) is None


def test_attention_alone_is_computed_again():
    assert count_flops(_settings("tcn"), **SIZES).fused_again == 0
    assert count_flops(_settings("transformer"), **SIZES).fused_again == 2 * (2 * 12 * 32 * 12)


@pytest.mark.parametrize(("window", "levels"), [(1, 1), (5, 1), (6, 2), (13, 2), (14, 3)])
def test_levels_just_cover_the_window(window, levels):
    assert count_levels(window, 3) == levels


class Last(torch.nn.Linear):
    def __init__(self, n_features, n_outputs, window):
        super().__init__(n_features, n_outputs, bias=False)

    def forward(self, x_btc):
        return super().forward(x_btc[:, -1])


class Looks(Last):
    def forward(self, x_btc):
        return super().forward(x_btc) if float(x_btc.sum()) > 0 else super().forward(-x_btc)
