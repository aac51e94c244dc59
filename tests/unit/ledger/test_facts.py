from pathlib import Path

import pytest

from fake_trials import make_outcome
from windtunnel.artifacts import write_artifact
from windtunnel.ledger.facts import read_facts, read_outcome
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import AttemptEnd, Verdict


def test_done_counts_for_its_own_trial_and_step_count(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "abc")
    assert read_outcome(folder, steps=3) == (None, "")
    outcome = make_outcome("abc", steps=3)
    write_artifact(folder.done, outcome)
    assert read_outcome(folder, steps=3) == (outcome, "")


@pytest.mark.parametrize(
    ("trial_id", "steps", "problem"), [("other", 3, "is of trial other"), ("abc", 2, "has 2 steps, expected 3")]
)
def test_done_of_another_trial_or_length_does_not_count(
    tmp_path: Path, trial_id: str, steps: int, problem: str
) -> None:
    folder = TrialFolder(tmp_path / "abc")
    write_artifact(folder.done, make_outcome(trial_id, steps=steps))
    outcome, found = read_outcome(folder, steps=3)
    assert outcome is None
    assert problem in found


def test_a_damaged_done_does_not_count(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    folder.done.write_text('{"schema": "windtunnel.outcome/1", "content": {"steps": 3')
    outcome, problem = read_outcome(folder, steps=3)
    assert outcome is None
    assert "is damaged" in problem


def test_facts_hold_every_attempts_end(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    folder.attempt(2).mkdir(parents=True)
    end = AttemptEnd(1, 1, Verdict.LOST, "gone", ("n0",), "7", 2.0)
    write_artifact(folder.end(1), end)
    facts = read_facts(folder, steps=3)
    assert (facts.attempts, facts.ends, facts.holder) == ((1, 2), {1: end}, None)
    assert facts.life_at > 0
