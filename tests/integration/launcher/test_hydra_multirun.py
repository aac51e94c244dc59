"""`windtunnel train -m` whole: real trials, through Hydra's own sweeper, in more than one batch."""

from pathlib import Path

import pytest
from hydra.core.utils import JobStatus

from windtunnel.artifacts import read_artifact
from windtunnel.cli.compose import run_app
from windtunnel.cli.train import choose_launcher, train_once
from windtunnel.launch.overview import read_study
from windtunnel.ledger.layout import read_attempt_numbers, trial_folder
from windtunnel.records.plan import Plan
from windtunnel.records.trial import Sweep

WORDS = ["study=quickstart", "+debug=fast", "hydra.sweeper.max_batch_size=1", "hydra.sweep.dir=multirun"]


@pytest.mark.usefixtures("hydra_restore_singletons")
def test_batches_of_a_sampler_are_one_sweep_and_give_it_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The third is the first again, as samplers propose: it is not run twice.
    values = "training.learning_rate=0.01,0.02,0.01"
    words = choose_launcher([*WORDS, values, "sweep.objective=samples_per_s"], tmp_path)
    batches = run_app(train_once, words, multirun=True, project=tmp_path)
    returned = [each for batch in batches for each in batch]
    assert [each.status for each in returned] == [JobStatus.COMPLETED] * 3
    assert returned[0].return_value == returned[2].return_value > 0
    sweep = read_artifact(tmp_path / "multirun/sweep.json", Sweep)
    assert [entry.outcome.samples_per_s for entry in sweep.entries if entry.outcome is not None] == [
        each.return_value for each in returned[:2]
    ]
    plan = read_artifact(tmp_path / "multirun/plan.json", Plan)
    attempts = [read_attempt_numbers(trial_folder(tmp_path / "results", trial.id)) for trial in plan.trials]
    assert attempts == [[1], [1]]
    assert read_study(tmp_path / "multirun").command.startswith("windtunnel train -m ")
