import re
from dataclasses import replace

import pytest

from saved_state import publish_tensors
from toy_trial import outcome, trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.checkpoints.dcp import model_tensors
from windtunnel.checkpoints.run import run_verify_checkpoints
from windtunnel.identity import hash_user_files
from windtunnel.latency.run import run_latency
from windtunnel.models.build import build_model
from windtunnel.records.checks import Latency
from windtunnel.records.trial import Sweep, SweepEntry, Verdict
from windtunnel.settings.latency import LatencySettings
from windtunnel.settings.study import LatencyStageSettings

SETTINGS = LatencyStageSettings(study="s", latency=LatencySettings(samples=100, discard=5))


@pytest.fixture
def sweep(tmp_path):
    settings = trial_settings()
    write_trial(tmp_path / "trials/aa", write_features(tmp_path / "features"), settings)
    model = build_model(settings.model, n_features=6, n_outputs=2, window=settings.task.window)
    publish_tensors(tmp_path / "trials/aa/checkpoints", 20, model_tensors(model), trial_id="aa")
    done = SweepEntry("aa", "tcn", {}, Verdict.COMPLETED, "", 1, 1.0, outcome("aa", 20))
    failed = SweepEntry("bb", "tcn bf16", {}, Verdict.OOM, "it was too large", 1, 1.0, None)
    return write_artifact(tmp_path / "sweep.json", Sweep("s", str(tmp_path / "trials"), (done, failed), {}))


def _run(sweep):
    checkpoints, out = sweep.with_name("checkpoints.json"), sweep.with_name("latency.json")
    run_verify_checkpoints(study="s", sweep=sweep, out=checkpoints)
    latency = run_latency(SETTINGS, sweep=sweep, checkpoints=checkpoints, out=out)
    assert read_artifact(out, Latency) == latency
    return latency


def test_a_verified_model_is_timed_and_a_failed_trial_is_named(sweep, capsys):
    latency = _run(sweep)
    (row,) = latency.rows
    assert (row.trial_id, row.name, row.samples, row.discarded) == ("aa", "tcn", 100, 5)
    assert 0 < row.p50_us <= row.p99_us <= row.p999_us
    assert latency.skipped == {"bb": "it has no model: OOM"}
    assert "latency 1 of 1: tcn: p50 " in capsys.readouterr().out


def test_a_damaged_model_is_not_timed(sweep, tmp_path):
    (tmp_path / "trials/aa/checkpoints/step-00000020/rank-00000.bin").write_bytes(b"")
    latency = _run(sweep)
    assert latency.rows == ()
    assert latency.skipped["aa"].startswith("its final checkpoint did not verify: ")


def test_a_trial_newer_than_the_check_is_named(sweep):
    found = read_artifact(sweep, Sweep)
    _run(sweep)
    newer = replace(found.entries[0], trial_id="cc")
    write_artifact(sweep, replace(found, entries=(newer,)))
    latency = run_latency(
        SETTINGS, sweep=sweep, checkpoints=sweep.with_name("checkpoints.json"), out=sweep.with_name("latency.json")
    )
    assert latency.skipped == {"cc": "its final checkpoint was not checked: run verify-checkpoints again"}


MINE = "from torch import nn\nclass Mine(nn.Linear):\n    def __init__(self, n_features, n_outputs, window):\n"
MINE += "        super().__init__(n_features, n_outputs)\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            MINE + "    changed = 1\n",
            r"its model could not be restored: the code of timed_toy_model.Mine in .* changed",
        ),
        (None, r"its model could not be restored: model _target_ 'timed_toy_model.Mine': no module"),
    ],
)
def test_a_model_whose_code_is_no_longer_what_was_trained_is_not_timed(sweep, tmp_path, text, reason):
    source = tmp_path / "timed_toy_model.py"
    source.write_text(MINE)
    settings = trial_settings(model={"name": "mine", "_target_": "timed_toy_model.Mine"})
    config = write_trial(
        tmp_path / "trials/aa", tmp_path / "features/MANIFEST.json", settings, import_root=str(tmp_path)
    )
    trained = replace(config.trial, user_sha256=hash_user_files("timed_toy_model.Mine", str(tmp_path)))
    write_artifact(tmp_path / "trials/aa/config.yaml", replace(config, trial=trained))
    source.unlink() if text is None else source.write_text(text)
    latency = _run(sweep)
    assert latency.rows == ()
    assert re.search(reason, latency.skipped["aa"])


def test_a_model_that_cannot_be_imported_any_more_is_named(sweep, tmp_path):
    (tmp_path / "unimportable_toy_model.py").write_text("import no_such_package_at_all\n")
    settings = trial_settings(model={"name": "mine", "_target_": "unimportable_toy_model.Mine"})
    config = write_trial(
        tmp_path / "trials/aa", tmp_path / "features/MANIFEST.json", settings, import_root=str(tmp_path)
    )
    trained = replace(config.trial, user_sha256=hash_user_files("unimportable_toy_model.Mine", str(tmp_path)))
    write_artifact(tmp_path / "trials/aa/config.yaml", replace(config, trial=trained))
    assert "cannot import 'unimportable_toy_model'" in _run(sweep).skipped["aa"]


def test_a_program_of_the_users_has_no_model_to_time(sweep):
    found = read_artifact(sweep, Sweep)
    entry = found.entries[0]
    assert entry.outcome is not None
    program = replace(entry, outcome=replace(entry.outcome, checkpoint=""))
    write_artifact(sweep, replace(found, entries=(program,)))
    latency = _run(sweep)
    assert latency.rows == ()
    assert "its program keeps its own checkpoints" in latency.skipped[entry.trial_id]
