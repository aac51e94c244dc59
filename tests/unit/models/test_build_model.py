import pytest
import torch
from torch import nn
from torch.nn import functional as F

from windtunnel.errors import SettingsError
from windtunnel.models.build import build_model
from windtunnel.models.tcn import CausalConv
from windtunnel.settings.model import ModelSettings

TARGETS = ["windtunnel.models.tcn.TCN", "windtunnel.models.transformer.CausalTransformer"]


def _build(target, **args):
    settings = ModelSettings(name="m", target=target, args=args)
    return build_model(settings, n_features=5, n_outputs=2, window=12)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_maps_a_window_to_its_outputs(target):
    assert _build(target)(torch.randn(3, 12, 5)).shape == (3, 2)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_sees_every_row_of_its_window(target):
    x_btc = torch.randn(1, 12, 5, requires_grad=True)
    _build(target)(x_btc).sum().backward()
    assert (x_btc.grad.abs().sum((0, 2)) > 0).all()


@pytest.mark.parametrize("target", TARGETS)
def test_hidden_rows_do_not_see_later_rows(target):
    model = _build(target).eval()
    hidden = []
    handle = model.blocks.register_forward_hook(lambda _module, _inputs, output: hidden.append(output))
    x_btc = torch.randn(1, 12, 5)
    changed = x_btc.clone()
    changed[0, 8:] += 1
    model(x_btc)
    model(changed)
    handle.remove()
    first, second = hidden
    assert torch.equal(first[:, :8], second[:, :8])
    assert not torch.equal(first[:, 8:], second[:, 8:])


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_learns_a_batch_by_heart(target):
    torch.set_num_threads(1)  # more would wait for each other on these shapes
    torch.manual_seed(0)
    model = _build(target, dropout=0.0)
    x_btc, y_bo = torch.randn(8, 12, 5), torch.randn(8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(x_btc) - y_bo).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


def test_the_tcn_has_just_enough_blocks_for_its_window():
    assert len(_build(TARGETS[0]).blocks) == 2  # 1 + 2 x 2 x 3 = 13 rows
    assert len(_build(TARGETS[0], levels=4).blocks) == 4


@pytest.mark.parametrize(
    ("target", "args", "message"),
    [
        ("no_such_package.Model", {}, "cannot import 'no_such_package'"),
        ("windtunnel.models.tcn.Tcn", {}, "is not an nn.Module class; .* has: CausalConv, ResidualBlock, TCN"),
        ("windtunnel.models.tcn.count_levels", {}, "is not an nn.Module class"),
        (TARGETS[0], {"width": 3}, "does not take these arguments .*width"),
        (TARGETS[0], {"kernel": 1}, "kernel=1"),
        (TARGETS[1], {"width": 10, "heads": 4}, "width 10 is not a multiple of 4 heads"),
        (TARGETS[1], {"layers": 0}, "layers=0"),
    ],
)
def test_a_wrong_model_is_refused_by_name(target, args, message):
    with pytest.raises(SettingsError, match=message):
        _build(target, **args)


class OwnModel(nn.Linear):
    def __init__(self, n_features, n_outputs, window, *, bias=True):
        super().__init__(n_features, n_outputs, bias=bias)


def test_a_users_class_gets_its_arguments():
    assert _build(f"{__name__}.OwnModel", bias=False).bias is None


def test_a_causal_convolution_is_torchs_own_padded_on_the_left():
    conv = CausalConv(4, kernel=3, dilation=2)
    weight_oik = conv.taps.weight.view(4, 3, 4).transpose(1, 2)
    x_btc = torch.randn(2, 9, 4)
    padded_bct = F.pad(x_btc.transpose(1, 2), (4, 0))
    expected = F.conv1d(padded_bct, weight_oik, conv.taps.bias, dilation=2).transpose(1, 2)
    assert torch.allclose(conv(x_btc), expected, atol=1e-6)
