import pytest

from windtunnel.launch.budget import add_up, find_overruns
from windtunnel.records.plan import Shape
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings

HOUR = Shape(2, 4, 1, 4, 1024, 60, "gpu")
SHORT = Shape(1, 1, 1, 0, 1024, 30, "gpu")
PRICED = ClusterSettings(kind="slurm", partition="gpu", cost_per_node_hour=3.0, currency="EUR")
FREE = ClusterSettings(kind="slurm", partition="gpu")


def test_at_most_is_every_trial_to_its_limit_on_all_its_nodes() -> None:
    charge = add_up([HOUR, HOUR, SHORT], used_s=1800.0, known_s={}, cluster=PRICED)
    assert (charge.at_most.node_hours, charge.at_most.money, charge.gpu_hours) == (4.5, 13.5, 16.0)
    assert (charge.used.node_hours, charge.node_hours) == (0.5, 5.0)


def test_what_is_expected_is_known_once_a_trial_of_each_shape_has_ended() -> None:
    known = {HOUR: [900.0, 1800.0, 9000.0]}
    charge = add_up([HOUR, HOUR], used_s=0.0, known_s=known, cluster=PRICED)
    assert charge.expected is not None
    assert charge.expected.node_hours == 1.0
    assert add_up([HOUR, SHORT], used_s=0.0, known_s=known, cluster=PRICED).expected is None


@pytest.mark.parametrize(
    ("sweep", "cluster", "message"),
    [
        (SweepSettings(budget_node_hours=2), FREE, "may take 2.5 node-hours (0.5 of them already used), past"),
        (SweepSettings(budget=7), PRICED, "may cost 7.50 EUR, past sweep.budget=7.00 EUR: lower cluster.time"),
        (SweepSettings(budget=7), FREE, "sweep.budget=7 USD, but cluster.cost_per_node_hour=0 gives no price"),
    ],
)
def test_a_budget_that_the_sweep_may_pass_refuses_it(
    sweep: SweepSettings, cluster: ClusterSettings, message: str
) -> None:
    (found,) = find_overruns(add_up([HOUR], used_s=1800.0, known_s={}, cluster=cluster), sweep, cluster)
    assert message in found


@pytest.mark.parametrize("sweep", [SweepSettings(), SweepSettings(budget_node_hours=2.5, budget=7.5)])
def test_a_sweep_within_its_budget_or_without_one_is_let_through(sweep: SweepSettings) -> None:
    assert find_overruns(add_up([HOUR], used_s=1800.0, known_s={}, cluster=PRICED), sweep, PRICED) == []
