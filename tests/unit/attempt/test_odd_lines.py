"""No line of a program's metrics, however odd, stops its supervisor or breaks what is made of its numbers."""

import itertools
import json
import math
from pathlib import Path

import pytest

from fabricated_study import Fake, make_ranking
from fake_trials import make_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt.metrics import MetricsFollower
from windtunnel.attempt.outcome import describe_outcome
from windtunnel.attempt.protocol import Line, find_shortfall, parse_line
from windtunnel.records.plan import Identity
from windtunnel.records.trial import StepRecord, TrialConfig, TrialOutcome
from windtunnel.report.metrics import encode_metrics

HUGE = "9" * 400
KEYS = (
    *("step", "done", "device", "loss", "learning_rate", "samples", "seconds", "time", "validation_loss"),
    *("validation_samples", "test_loss", "test_samples", "params", "peak_rss_mib", "accuracy", "\\ud800x", ""),
)
VALUES = (
    *(HUGE, "-" + HUGE, "9" * 5000, "NaN", "Infinity", "-Infinity", "1e999", "1e308", "-1e308", "1e-320", "-0.0"),
    *(str(2**53), str(2**53 + 1), str(2**63 - 1), str(2**63), str(-(2**63)), "0", "-1", "1.5", "true", "null"),
    *('"text"', '"\\ud800"', '"\\u0000"', "[]", "{}", "[[1]]", '"' + "x" * 60000 + '"'),
)
BYTES = (b"\0\0", b"\xff", b"[" * 60000, b'{"a":' * 9000, b"nul", b"1", b'"', '{"step": 1}'.encode("utf-16"), b"\r")
ODD = [f'{{"{key}": {value}}}'.encode() for key, value in itertools.product(KEYS, VALUES)] + list(BYTES)
WITH_STEPS = [
    f'{{"step": {n}, "{key}": {value}}}'.encode()
    for n, (key, value) in enumerate(itertools.product(KEYS, VALUES), 1)
    if key != "step"
]


def follow(folder: Path, *lines: bytes) -> MetricsFollower:
    follower = MetricsFollower(folder / "theirs", folder / "ours", attempt=1)
    follower.source.write_bytes(b"\n".join(lines))
    follower.finish()
    return follower


def write_outcome(folder: Path, follower: MetricsFollower) -> TrialOutcome:
    trial = make_trial()
    trial.settings["training"]["discard_steps"] = 0
    config = TrialConfig(trial, Identity("d", "s", "2"), "", "", "")
    outcome = describe_outcome(config, follower.tally, attempt=1, rank_hosts=("here",), wall_s=1.0)
    return read_artifact(write_artifact(folder / "DONE.json", outcome), TrialOutcome)


def parse_or_explain(data: bytes) -> Line | str:
    try:
        return parse_line(data)
    except ValueError as error:
        return str(error)


def test_a_line_is_understood_or_refused_in_a_few_words() -> None:
    for data in ODD:
        found = parse_or_explain(data)
        if isinstance(found, str):
            assert 0 < len(found.encode()) < 200, data[:80]
        else:
            assert found.step is None or 0 <= found.step <= 2**53
            assert len(found.device.encode()) < 1000


@pytest.mark.parametrize("lines", [ODD, ODD[::-1], WITH_STEPS], ids=["forth", "back", "with steps"])
def test_odd_lines_together_leave_an_outcome_that_is_read_back_and_reported(
    tmp_path: Path, lines: list[bytes]
) -> None:
    follower = follow(tmp_path, b'{"step": 0, "time": 5}', *lines)
    outcome = write_outcome(tmp_path, follower)
    assert follower.tally.passed_over > 50
    assert all(math.isfinite(value) for value in (outcome.samples_per_s or 0, outcome.step_s_median or 0))
    steps = [StepRecord(**json.loads(line)) for line in follower.target.read_text().splitlines()]
    assert encode_metrics(make_ranking(Fake("a", loss=0.5)), steps={"a": steps}, stages=(), meta={})


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (f'"loss": {HUGE}', "loss is 9999999999"),
        (f'"accuracy": {HUGE}', "accuracy is 9999999999"),
        ('"params": NaN', "params is nan, expected a finite number"),
        ('"validation_samples": Infinity', "validation_samples is inf, expected a finite number"),
        (f'"params": {2**63 - 1}', "params is 9223372036854775807, expected one below 2"),
        ('"seconds": 1e300', "seconds is 1e[+]300, expected one below 2"),
        (f'"step": {"9" * 5000}', "a number of thousands of digits"),
        (f'"step": {2**53 + 1}', "step is 9007199254740993, expected a count up to 2"),
    ],
)
def test_a_number_that_nothing_holds_is_passed_over_and_told(tmp_path: Path, told: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_line(f"{{{told}}}".encode())
    tally = follow(tmp_path, f"{{{told}}}".encode(), b'{"step": 3, "done": true}').tally
    assert (tally.passed_over, tally.last_step, find_shortfall(tally, steps=3)) == (1, 3, "")
    assert tally.first_problem.startswith("line 1: ")


def test_a_loss_that_diverged_is_told_as_it_is_and_its_step_counts(tmp_path: Path) -> None:
    follower = follow(tmp_path, b'{"step": 3, "loss": NaN, "validation_loss": Infinity, "done": true}')
    outcome = write_outcome(tmp_path, follower)
    assert (outcome.steps, follower.tally.passed_over) == (3, 0)
    assert outcome.final_train_loss is not None
    assert math.isnan(outcome.final_train_loss)
    assert outcome.evaluations[0].loss == math.inf


def test_a_time_too_short_for_any_clock_times_nothing(tmp_path: Path) -> None:
    tally = follow(tmp_path, b'{"step": 1}', b'{"step": 2, "samples": 1e18, "seconds": 1e-320}').tally
    assert not tally.timed
