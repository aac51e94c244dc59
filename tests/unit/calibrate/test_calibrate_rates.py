from itertools import count

import pytest
import torch

from windtunnel.artifacts import read_artifact
from windtunnel.calibrate.rates import measure_rate
from windtunnel.calibrate.run import run_calibrate
from windtunnel.records.cluster import DeviceFacts
from windtunnel.settings.cluster import ClusterSettings


def test_a_rate_is_the_median_without_the_first_call():
    seconds = iter([100.0, *([2.0, 4.0, 4.0])])
    rate = measure_rate("copy", 8.0, "GB/s", lambda: next(seconds))
    assert (rate.value, rate.spread, rate.repeats) == (2.0, 0.0, 3)


def test_fast_work_is_repeated_up_to_a_bound():
    calls = count()
    rate = measure_rate("copy", 1.0, "GB/s", lambda: next(calls) * 0 + 0.001)
    assert rate.repeats == 30
    assert rate.value == pytest.approx(1000)


@pytest.mark.timeout(60)
def test_the_stage_writes_every_rate_and_leaves_nothing_else_behind(tmp_path):
    out = tmp_path / "device.json"
    before = torch.get_num_threads()
    facts = run_calibrate(ClusterSettings(kind="local", partition="here"), out=out)
    assert read_artifact(out, DeviceFacts) == facts
    names = [rate.name for rate in facts.rates]
    assert names == ["matmul_fp32", "matmul_bf16", "copy", "storage_write", "storage_read"]
    assert all(rate.value > 0 and rate.repeats >= 3 for rate in facts.rates)
    assert torch.get_num_threads() == before
    assert list(tmp_path.iterdir()) == [out]
