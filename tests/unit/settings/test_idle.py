import pytest

from windtunnel.cli.compose import compose_candidates, compose_study
from windtunnel.settings.idle import find_idle


@pytest.fixture
def idle(project_dir):
    """The lines about `quickstart` with these overrides."""

    def find(*overrides: str) -> tuple[str, ...]:
        study = compose_study("quickstart", overrides, project=project_dir)
        candidates = compose_candidates("quickstart", overrides, project=project_dir)
        return find_idle(study, tuple(candidate.settings for candidate in candidates))

    return find


@pytest.mark.parametrize("cluster", ["local", "slurm", "testbed"])
def test_what_we_ship_has_no_idle_setting(idle, cluster):
    assert idle(f"cluster={cluster}") == ()


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("cluster.account=quant", "cluster.account=quant has no effect: cluster.kind=local submits no jobs"),
        ("cluster.currency=EUR", "cluster.currency=EUR has no effect: cluster.cost_per_node_hour=0 gives no price"),
        ("sweep.check_nodes=false", "sweep.check_nodes=False has no effect: cluster.kind=local has no node but this"),
        ("sweep.poll_s=10", "sweep.poll_s=10.0 has no effect: cluster.kind=local asks no scheduler"),
        ("+data.text.zone=UTC", "data.text.zone=UTC has no effect: data.source=daily_csv has a layout of its own"),
        ("placement=slurm", "placement.policy=slurm has no effect: every trial runs on one node"),
        ("training.checkpoint_every=10000", "training.checkpoint_every=10000 has no effect: training.steps is less"),
    ],
)
def test_a_setting_without_effect_is_named_with_the_reason(idle, override, line):
    (found,) = idle(override)
    assert found.startswith(line)


def test_a_setting_that_one_trial_uses_is_not_idle(idle):
    assert idle("placement=slurm", "parallelism=ddp", "cluster=slurm", "parallelism.nodes=2") == ()


def test_local_trials_are_idle_on_slurm(idle):
    assert "sweep.local_trials=2 has no effect" in idle("cluster=slurm", "sweep.local_trials=2")[0]
