from contextlib import nullcontext

import pytest
import torch
from torch import nn

from windtunnel.settings.training import TrainingSettings
from windtunnel.tasks.find import find_task
from windtunnel.training.step import gradient_norm, learning_rate, make_optimizer, rank_loss

SETTINGS = TrainingSettings(steps=100, warmup_steps=10, learning_rate=1.0)


def test_the_rate_rises_to_its_peak_and_falls_to_a_tenth():
    rates = [learning_rate(step, SETTINGS) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
    assert rates[10] == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[55] == pytest.approx(0.55)
    assert rates[99] == pytest.approx(0.1, abs=1e-3)


def test_a_run_shorter_than_its_warm_up_only_rises():
    short = TrainingSettings(steps=5, warmup_steps=10, learning_rate=1.0)
    assert [learning_rate(step, short) for step in range(5)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_without_warm_up_training_begins_at_the_peak():
    assert learning_rate(0, TrainingSettings(warmup_steps=0, learning_rate=1.0)) == 1.0


def test_only_matrices_decay():
    groups = make_optimizer(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)), SETTINGS).param_groups
    assert [(len(group["params"]), group["weight_decay"]) for group in groups] == [(1, 0.01), (3, 0.0)]


def test_a_model_without_vectors_has_one_group():
    assert len(make_optimizer(nn.Linear(3, 4, bias=False), SETTINGS).param_groups) == 1


def test_parts_of_ranks_sum_to_the_mean_over_the_global_batch():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 2))
    x_btc, target_bo = torch.randn(7, 2, 3), torch.rand(7, 2)

    def loss(rows):
        batch = (x_btc[rows], target_bo[rows])
        options = {"task": find_task("direction_volatility"), "volatility_weight": 0.5, "batch_size": 7}
        return rank_loss(model, batch, context=nullcontext(), **options)

    whole = loss(slice(None))
    assert torch.allclose(loss(slice(0, 3)) + loss(slice(3, 7)), whole)
    whole.backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert gradient_norm(model) == pytest.approx(float(expected))
