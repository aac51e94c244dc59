import pytest

from windtunnel.cli.explain_hydra import explain_hydra


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("space.values={seed:[1]}", "'+space.values={SETTING:[A,B]}' varies one more setting"),
        ("space.values.seed=[1]", "space.values.seed cannot be set so"),
        ("workload.parameters.lrr=1", "add it with +workload.parameters.lrr=1"),
        ("cluster.sbatch.nice=1", "add it with +cluster.sbatch.nice=1"),
        ("hydra.launcher.timeout_min=5", "set cluster.time"),
        ("hydra.launcher.nosuch=5", "or cluster.sbatch for any sbatch option"),
        ("training.stepz=1", "unknown setting 'training.stepz' (known in training: accumulate, async_checkpoints"),
    ],
)
def test_a_setting_that_is_not_there_is_told_with_what_to_type(override, words):
    key = override.partition("=")[0]
    assert words in explain_hydra(f"Could not override '{key}'.\nTo append to your config use +{key}", [override])


@pytest.mark.parametrize(
    ("group", "option", "words"),
    [
        ("hydra/sweeper", "optuna", "pip install hydra-optuna-sweeper"),
        ("hydra/launcher", "submitit_local", "cluster=local, cluster=slurm"),
        ("model", "mlp", "(known: tcn, transformer)"),
    ],
)
def test_an_option_that_is_not_there_is_told_with_the_known_ones(group, option, words):
    message = f"Could not find '{group}/{option}'\n\nAvailable options in '{group}':\n\ttcn\n\ttransformer"
    assert words in explain_hydra(message, [])
