"""The kernels' benchmark: its arithmetic on small arrays; the whole of it in short on the real files."""

import bottleneck
import pytest
import torch
from benchmarks import kernels
from benchmarks.harness import PartResult
from benchmarks.kernels_data import make_noise

from windtunnel.kernels import windows


@pytest.mark.parametrize("moment", kernels.MOMENTS)
def test_the_error_of_right_results_is_small_and_nothing_is_lost(moment):
    x = torch.from_numpy(make_noise(500)).float()
    ours = getattr(windows, f"rolling_{moment}")(x, 20)[19:].double()
    truth = kernels.find_truths(x.double(), 20)[moment]
    error, lost = kernels.find_error(ours, truth, truth.abs())
    assert 0 < error < 1e-5
    assert lost == 0
    assert kernels.find_error(ours * torch.nan, truth, truth)[1] == len(truth)


def test_a_comparison_takes_the_worse_of_the_windows():
    result = kernels.compare_windows("mean", make_noise(2000), "mean", theirs=bottleneck.move_mean, quick=True)
    assert result.figures["mean"] == min(row.median for row in result.rows)
    assert result.cases == {"mean": 3}
    assert [row.name for row in result.rows] == ["mean, window 20", "mean, window 500"]


def test_the_worst_of_several_results_keeps_all_rows():
    results = [PartResult({"a": value}, {"a": 3}, ()) for value in (2.0, 1.0)]
    assert kernels.take_worst(results).figures == {"a": 1.0}


@pytest.mark.shared
def test_every_part_gives_its_figures_in_a_short_run():
    for part in kernels.PARTS:
        result = part.run(True)
        assert set(result.figures) == set(result.cases) == set(part.figures)
        assert all(value >= 0 for value in result.figures.values())
