from dataclasses import replace

import pytest

from saved_state import publish_files
from toy_trial import outcome
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.checkpoints.run import run_verify_checkpoints
from windtunnel.records.checks import CheckpointReport
from windtunnel.records.trial import Sweep, SweepEntry, Verdict


def _publish(trials, trial_id, step):
    return publish_files(trials / trial_id / "checkpoints", step, {"weights": b"w" * step}, trial_id=trial_id)


@pytest.fixture
def sweep(tmp_path):
    done = SweepEntry("aa", "tcn", {}, Verdict.COMPLETED, "", 1, 1.0, outcome("aa", 20))
    failed = SweepEntry("bb", "tcn bf16", {}, Verdict.FAILED, "it failed", 1, 1.0, None)
    for step in (10, 20):
        _publish(tmp_path / "trials", "aa", step)
    return write_artifact(tmp_path / "sweep.json", Sweep("s", str(tmp_path / "trials"), (done, failed), {}))


def _run(sweep):
    out = sweep.with_name("checkpoints.json")
    report = run_verify_checkpoints(study="s", sweep=sweep, out=out)
    assert read_artifact(out, CheckpointReport) == report
    return report.checks


def test_every_kept_checkpoint_of_a_completed_trial_is_checked(sweep, capsys):
    checks = _run(sweep)
    assert [(check.trial_id, check.step, check.bytes, check.verified) for check in checks] == [
        ("aa", 20, 20, True),
        ("aa", 10, 10, True),
    ]
    assert capsys.readouterr().out == "verify 1 of 1: tcn: 2 checkpoints, 30 B, all whole\n"


def test_damage_is_reported_with_its_reason(sweep, tmp_path):
    (tmp_path / "trials/aa/checkpoints/step-00000020/weights").write_bytes(b"x" * 20)
    checks = _run(sweep)
    assert [check.verified for check in checks] == [False, True]
    assert "SHA-256" in checks[0].reason


def test_a_final_checkpoint_that_is_gone_is_reported(sweep, tmp_path):
    (tmp_path / "trials/aa/checkpoints/step-00000020").rename(tmp_path / "away")
    checks = _run(sweep)
    assert [(check.step, check.verified) for check in checks] == [(20, False), (10, True)]
    assert "MANIFEST.json" in checks[0].reason


def test_another_trials_checkpoint_does_not_count(sweep, tmp_path):
    found = read_artifact(sweep, Sweep)
    other = replace(found.entries[0], trial_id="cc", outcome=outcome("cc", 20))
    (tmp_path / "trials/aa").rename(tmp_path / "trials/cc")
    write_artifact(sweep, replace(found, entries=(other,)))
    assert [check.reason for check in _run(sweep)] == [
        "step-00000020 belongs to trial aa",
        "step-00000010 belongs to trial aa",
    ]


def test_a_program_that_keeps_its_own_checkpoints_is_skipped_by_name(sweep, tmp_path, capsys):
    found = read_artifact(sweep, Sweep)
    program = replace(found.entries[0], outcome=replace(outcome("aa", 20), checkpoint=""))
    write_artifact(sweep, replace(found, entries=(program,)))
    assert _run(sweep) == ()
    assert capsys.readouterr().out == "verify skipped tcn: its program keeps its own checkpoints\n"
