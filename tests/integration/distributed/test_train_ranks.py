import json
import subprocess
import sys

import pytest

from toy_trial import TCN, read_log, run_ranks, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact
from windtunnel.checkpoints.manifest import list_checkpoints
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.records.meter import sum_error
from windtunnel.records.trial import TrialOutcome
from windtunnel.settings.kernels import KernelSettings

PLAIN = {**TCN, "args": {"channels": 8}}  # without dropout, which ranks draw apart
DIVERGING = """
import torch
from torch import nn

class Diverging(nn.Linear):
    def __init__(self, n_features, n_outputs, window, *, after):
        super().__init__(n_features, n_outputs)
        self.after = after
        self.calls = 0

    def forward(self, x_btc):
        self.calls += self.training
        return super().forward(x_btc[:, -1]) * (float("nan") if self.calls > self.after else 1.0)
"""


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return write_features(tmp_path_factory.mktemp("features"))


def _make(tmp_path, features, name, **options):
    write_trial(tmp_path / name, features, trial_settings(**options), import_root=str(tmp_path))
    return tmp_path / name


def _read_losses(trial_dir):
    return [json.loads(line)["loss"] for line in (trial_dir / "metrics.jsonl").read_text().splitlines()]


def _read_failure(trial_dir, *, rank=0, attempt=1):
    return json.loads((trial_dir / f"attempts/{attempt}/error-rank-{rank}.json").read_text())


def test_the_module_runs_one_rank_from_its_order_to_its_outcome(tmp_path, features):
    trial = tmp_path / "t"
    kernels = KernelSettings(backend="reference")
    write_trial(trial, features, trial_settings().model_copy(update={"kernels": kernels}), import_root=str(tmp_path))
    (trial / "attempts/1").mkdir(parents=True)
    command = [sys.executable, "-m", "windtunnel.training", "--trial-dir", str(trial), "--attempt", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("step 5/20  loss ")
    outcome = read_artifact(trial / "DONE.json", TrialOutcome)
    assert (outcome.trial_id, outcome.attempt, outcome.steps) == ("t", 1, 20)
    assert outcome.checkpoint == "checkpoints/step-00000020"
    assert [(part.split, part.samples) for part in outcome.evaluations] == [("validation", 50), ("test", 50)]
    assert (outcome.steps_timed, outcome.steps_discarded, outcome.resumed_from_step) == (10, 10, None)
    assert set(outcome.phases_s) == {"setup", "train", "checkpoint", "evaluate"}
    assert outcome.peak_rss_mib > 50
    assert outcome.kernels == "reference"
    assert outcome.final_train_loss == _read_losses(trial)[-1]
    assert [path.name for path in list_checkpoints(trial / "checkpoints")] == ["step-00000020", "step-00000014"]
    assert verify_checkpoint(trial / outcome.checkpoint) == []


@pytest.mark.gloo
def test_two_ranks_take_the_steps_of_one_and_every_rank_reports_its_host(tmp_path, features):
    one = _make(tmp_path, features, "one", model=PLAIN)
    two = _make(tmp_path, features, "two", model=PLAIN, ranks=2)
    assert run_ranks(one, ranks=1) == [0]
    assert run_ranks(two, ranks=2) == [0, 0]
    assert _read_losses(two) == pytest.approx(_read_losses(one), rel=1e-4)
    left, right = (read_artifact(trial / "DONE.json", TrialOutcome) for trial in (one, two))
    for alone, shared in zip(left.evaluations, right.evaluations, strict=True):
        assert shared.loss == pytest.approx(alone.loss, rel=1e-3)
    assert len(right.rank_hosts) == 2
    assert [len(outcome.rank_phases) for outcome in (left, right)] == [1, 2]
    assert all(sum_error(phases) < 0.01 and phases.steps == 10 for phases in right.rank_phases)
    assert all(phases.seconds["communication"] > 0 for phases in right.rank_phases)
    assert left.rank_phases[0].seconds["communication"] == 0.0
    assert left.work == right.work
    weights, gradients = ({m.weights_bytes, m.gradients_bytes} for m in right.rank_memory)
    assert weights == gradients == {4 * right.params}
    assert all(memory.activations_bytes > 0 for memory in right.rank_memory)
    assert (left.work.tokens, left.work.flop_source) == (12 * 8, "declared")
    line = json.loads((two / "metrics.jsonl").read_text().splitlines()[0])
    assert sum(line["phases_s"].values()) > line["step_s"] / 2
    assert "step 5/20" not in read_log(two, rank=1)


@pytest.mark.gloo
def test_a_trial_run_twice_has_the_same_losses_to_the_last_bit(tmp_path, features):
    trials = [_make(tmp_path, features, name, ranks=2, batch_size=13) for name in ("first", "second")]
    assert [run_ranks(trial, ranks=2) for trial in trials] == [[0, 0], [0, 0]]
    assert _read_losses(trials[0]) == _read_losses(trials[1])


def test_bf16_trains_close_to_fp32_and_not_the_same(tmp_path, features):
    trials = [_make(tmp_path, features, name, model=PLAIN, precision=name) for name in ("fp32", "bf16")]
    assert [run_ranks(trial, ranks=1) for trial in trials] == [[0], [0]]
    fp32, bf16 = (_read_losses(trial) for trial in trials)
    assert bf16 != fp32
    assert bf16 == pytest.approx(fp32, rel=0.05)


def test_a_trial_that_is_done_is_not_run_again(tmp_path, features):
    trial = _make(tmp_path, features, "t")
    assert run_ranks(trial, ranks=1) == [0]
    before = (trial / "DONE.json").read_bytes()
    assert run_ranks(trial, ranks=1, attempt=2) == [0]
    assert (trial / "DONE.json").read_bytes() == before
    assert read_log(trial, attempt=2).endswith("DONE.json is there: nothing to do\n")


def test_a_damaged_checkpoint_is_passed_over_by_name_for_the_one_before(tmp_path, features):
    trial = _make(tmp_path, features, "t")
    assert run_ranks(trial, ranks=1) == [0]
    first = read_artifact(trial / "DONE.json", TrialOutcome)
    losses = _read_losses(trial)
    (trial / "DONE.json").unlink()
    (trial / "checkpoints/step-00000020/rank-00000.bin").write_bytes(b"")
    assert run_ranks(trial, ranks=1, attempt=2) == [0]
    outcome = read_artifact(trial / "DONE.json", TrialOutcome)
    assert outcome.resumed_from_step == 14
    assert "skipped checkpoint step-00000020: step-00000020/rank-00000.bin has 0 bytes" in read_log(trial, attempt=2)
    assert outcome.evaluations == first.evaluations
    assert _read_losses(trial) == losses


def test_a_trial_whose_checkpoints_are_all_damaged_stops_and_does_not_begin_anew(tmp_path, features):
    trial = _make(tmp_path, features, "t")
    assert run_ranks(trial, ranks=1) == [0]
    (trial / "DONE.json").unlink()
    for path in list_checkpoints(trial / "checkpoints"):
        (path / "MANIFEST.json").write_text("{")
    assert run_ranks(trial, ranks=1, attempt=2) == [1]
    failure = _read_failure(trial, attempt=2)
    assert failure["type"] == "CheckpointError"
    assert "none of the 2 checkpoints" in failure["message"]
    assert len(_read_losses(trial)) == 4


def test_a_trial_killed_between_its_last_checkpoint_and_its_outcome_only_evaluates(tmp_path, features):
    trial = _make(tmp_path, features, "t")
    assert run_ranks(trial, ranks=1) == [0]
    first = read_artifact(trial / "DONE.json", TrialOutcome)
    (trial / "DONE.json").unlink()
    assert run_ranks(trial, ranks=1, attempt=2) == [0]
    second = read_artifact(trial / "DONE.json", TrialOutcome)
    assert (second.resumed_from_step, second.steps) == (20, 20)
    assert (second.evaluations, second.final_train_loss) == (first.evaluations, first.final_train_loss)
    assert second.step_s_median == first.step_s_median


def test_a_loss_that_is_not_finite_ends_the_trial_by_name_and_leaves_no_poisoned_checkpoint(tmp_path, features):
    (tmp_path / "diverging_toy_model.py").write_text(DIVERGING)
    model = {"name": "own", "_target_": "diverging_toy_model.Diverging", "args": {"after": 8}}
    trial = _make(tmp_path, features, "t", model=model)
    assert run_ranks(trial, ranks=1) == [1]
    failure = _read_failure(trial)
    assert failure["type"] == "DivergedError"
    assert failure["message"].startswith("the loss became nan at step 8:")
    assert failure["message"].endswith("it persists after 2 returns to a clean checkpoint (steps 9, 8, 8)")
    assert [path.name for path in list_checkpoints(trial / "checkpoints")] == ["step-00000007"]


def test_a_users_mistake_exits_2_with_its_message_alone(tmp_path, features):
    trial = _make(tmp_path, features, "t", model={"name": "none", "_target_": "no_such_package.Model"})
    assert run_ranks(trial, ranks=1) == [2]
    log = read_log(trial)
    assert "windtunnel: model _target_ 'no_such_package.Model': cannot import 'no_such_package'" in log
    assert "Traceback" not in log
    assert _read_failure(trial)["type"] == "SettingsError"


@pytest.mark.gloo
def test_a_mistake_that_rank_0_finds_ends_all_ranks_with_its_code(tmp_path, features):
    one = _make(tmp_path, features, "t")
    assert run_ranks(one, ranks=1) == [0]
    (one / "DONE.json").unlink()
    write_trial(one, features, trial_settings(ranks=2))
    assert run_ranks(one, ranks=2, attempt=2) == [1, 1]
    assert "the checkpoint after step 20 has settings_sha256" in _read_failure(one, attempt=2)["message"]
    assert not (one / "attempts/2/error-rank-1.json").exists()


@pytest.mark.gloo
def test_checkpoints_may_come_as_often_as_failures_make_worth_their_cost(tmp_path, features):
    trial = _make(
        tmp_path, features, "t", ranks=2, steps=120, checkpoint_every=0, keep_checkpoints=99, node_mtbf_hours=1e-6
    )
    assert run_ranks(trial, ranks=2) == [0, 0]
    steps = [int(path.name.rpartition("-")[2]) for path in reversed(list_checkpoints(trial / "checkpoints"))]
    assert steps[0] == 50, "the first, whose cost is measured"
    assert len(steps) > 3
    assert steps[-1] == 120


def test_a_longer_time_limit_or_another_account_goes_on_from_the_checkpoint(tmp_path, features):
    trial = _make(tmp_path, features, "t")
    assert run_ranks(trial, ranks=1) == [0]
    (trial / "DONE.json").unlink()
    settings = trial_settings()
    dearer = settings.cluster.model_copy(update={"time": 999, "account": "desk", "prometheus_dir": "/tmp"})
    write_trial(trial, features, settings.model_copy(update={"cluster": dearer}), import_root=str(tmp_path))
    assert run_ranks(trial, ranks=1, attempt=2) == [0], read_log(trial, attempt=2)
    assert read_artifact(trial / "DONE.json", TrialOutcome).resumed_from_step == 20
