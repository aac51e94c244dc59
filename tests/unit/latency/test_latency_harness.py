import gc

import pytest
import torch
from torch import nn

from windtunnel.latency.engines import draw_samples, make_eager
from windtunnel.latency.harness import find_percentiles, time_calls


def test_warm_up_is_called_and_not_counted():
    calls = []
    times_ns = time_calls(calls.append, ["a", "b"], samples=5, discard=3)
    assert len(times_ns) == 5
    assert calls == ["a", "b", "a", "a", "b", "a", "b", "a"]
    assert all(time_ns >= 0 for time_ns in times_ns)


def test_the_collector_is_quiet_while_timing_and_as_before_afterwards():
    states = []
    time_calls(lambda _: states.append(gc.isenabled()), [0], samples=2, discard=1)
    assert states == [False] * 3
    assert gc.isenabled()


def test_a_call_that_fails_leaves_the_collector_on():
    with pytest.raises(ZeroDivisionError):
        time_calls(lambda x: 1 / x, [0], samples=2, discard=0)
    assert gc.isenabled()


def test_percentiles_are_times_that_were_seen():
    found = find_percentiles([1000 * n for n in range(2000, 0, -1)])
    assert (found.p50_us, found.p99_us, found.p999_us) == (1000.0, 1980.0, 1998.0)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_a_model_is_served_in_its_own_precision_and_answers_in_fp32(precision, dtype):
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            seen.append((x.dtype, self.training, torch.is_inference_mode_enabled()))
            return super().forward(x[:, -1])

    engine = make_eager(Spy(3, 2), precision=precision, device=torch.device("cpu"))
    output = engine(draw_samples(1, window=4, n_features=3)[0])
    assert seen == [(dtype, False, True)]
    assert (output.shape, output.dtype) == ((1, 2), torch.float32)


def test_samples_are_the_same_for_every_model():
    first, second = (draw_samples(3, window=4, n_features=2) for _ in range(2))
    assert all(torch.equal(left, right) for left, right in zip(first, second, strict=True))
    assert not torch.equal(first[0], first[1])
