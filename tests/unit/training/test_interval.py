import math

import pytest

from windtunnel.training.interval import daly_interval_s, interval_steps


def test_cheap_checkpoints_come_at_youngs_interval():
    assert daly_interval_s(1.0, 1e6) == pytest.approx(math.sqrt(2e6), rel=1e-3)


def test_the_interval_loses_less_than_any_other():
    cost_s, mtbf_s = 60.0, 3600.0
    best_s = daly_interval_s(cost_s, mtbf_s)

    def wall(interval_s):  # Daly's equation 20, without restart time, up to a constant
        return mtbf_s * (math.exp((interval_s + cost_s) / mtbf_s) - 1) / interval_s

    for other_s in (best_s * 0.9, best_s * 1.1):
        assert wall(best_s) < wall(other_s)


def test_checkpoints_dearer_than_failures_are_apart_come_at_those():
    assert daly_interval_s(100.0, 10.0) == 10.0


def test_more_nodes_fail_more_often():
    few = interval_steps(cost_s=0.5, step_s=0.1, nodes=1, node_mtbf_hours=720)
    many = interval_steps(cost_s=0.5, step_s=0.1, nodes=100, node_mtbf_hours=720)
    assert few == pytest.approx(10 * many, rel=0.02)
    assert interval_steps(cost_s=0.0, step_s=1e6, nodes=1, node_mtbf_hours=1) == 1
