import subprocess
import sys

import torch
from torch import nn

from windtunnel.training.memory import Saved, read_memory

CPU = torch.device("cpu")


def _take_step(model, optimizer, saved):
    with saved.watch():
        loss = model(torch.randn(5, 3)).square().sum()
    loss.backward()
    optimizer.step()


def test_memory_is_told_by_what_it_holds():
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    saved = Saved(model)
    _take_step(model, optimizer, saved)
    memory = read_memory(model, optimizer, CPU, saved=saved)
    assert memory.weights_bytes == memory.gradients_bytes == 4 * 12
    assert memory.optimizer_bytes == 2 * 4 * 12 + 4  # two moments, and the number of the step
    assert memory.activations_bytes == 4 * (5 * 3 + 5 * 4)  # the input, and what tanh gave; the weight is the model's
    assert memory.peak_bytes >= 2**20
    assert memory.allocated_bytes is None


def test_a_pass_that_is_watched_computes_the_same():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))
    x = torch.randn(5, 3)
    plain = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    with Saved(model).watch():
        watched = model(x).sum()
    assert all(map(torch.equal, torch.autograd.grad(watched, list(model.parameters())), plain))


def test_buckets_that_share_a_storage_count_once():
    model = nn.Linear(4, 4)
    flat = torch.zeros(20)
    model.weight.grad, model.bias.grad = flat[:16].view(4, 4), flat[16:]
    memory = read_memory(model, torch.optim.SGD(model.parameters(), lr=1e-3), CPU, saved=Saved(model))
    assert (memory.gradients_bytes, memory.optimizer_bytes, memory.activations_bytes) == (80, 0, None)


_PEAK = """
from windtunnel.training.memory import read_peak_resident
import torch
before = read_peak_resident()
kept = torch.ones(16 * 2**20)
print(read_peak_resident() - before)
"""


def test_the_peak_is_this_process() -> None:
    # Of a new one: this one's may have been higher before.
    grown = subprocess.run([sys.executable, "-c", _PEAK], check=True, capture_output=True, text=True).stdout
    assert 32 * 2**20 <= int(grown) < 256 * 2**20
