import json
from typing import Any

import pytest

from windtunnel.attempt.protocol import (
    MAX_LINE_BYTES,
    Tally,
    describe_passed_over,
    find_shortfall,
    measure_speed,
    parse_line,
)


def tell(*lines: dict[str, Any], at: float = 100.0, every_s: float = 0.0) -> Tally:
    tally = Tally()
    for number, line in enumerate(lines):
        tally.add(parse_line(json.dumps(line).encode()), now=at + number * every_s)
    return tally


def test_known_numbers_have_their_place_and_others_are_metrics() -> None:
    line = parse_line(b'{"step": 3, "loss": 0.5, "accuracy": 0.7, "note": "x", "device": "H100", "flag": true}')
    assert (line.step, line.known, line.metrics) == (3, {"loss": 0.5}, {"accuracy": 0.7})
    assert (line.done, line.device) == (False, "H100")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"step": 1, "lo', "not JSON, or cut off"),
        (b"\xff\xfe", "not JSON, or cut off"),
        (b"[1]", "a list, expected an object"),
        (b'{"step": -1}', "step is -1, expected a count"),
        (b'{"step": true}', "step is True, expected a count"),
        (b'{"step": 1, "loss": "low"}', "loss is 'low', expected a number"),
        (b'{"done": 1}', "done is 1, expected true or false"),
        (b" " * (MAX_LINE_BYTES + 1), "longer than"),
        (b"[" * 60000, "not JSON, or cut off"),
    ],
)
def test_a_line_that_cannot_be_understood_says_why(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_line(data)


def test_a_step_that_goes_back_is_refused_and_changes_nothing() -> None:
    tally = tell({"step": 5, "loss": 1.0})
    with pytest.raises(ValueError, match="step 4 after step 5: steps do not go back"):
        tally.add(parse_line(b'{"step": 4, "loss": 9.0}'), now=1.0)
    assert (tally.last_step, tally.newest["loss"]) == (5, 1.0)


def test_speed_is_the_median_over_lines_of_what_the_program_timed() -> None:
    lines = [
        {"step": step, "samples": 100, "seconds": seconds} for step, seconds in ((10, 9), (20, 1), (30, 2), (40, 4))
    ]
    speed = measure_speed(tell(*lines), discard_steps=0)
    assert (speed.samples_per_s, speed.step_s_median, speed.step_s_p90) == (50.0, 0.2, 0.4)
    assert (speed.steps_timed, speed.steps_discarded) == (30, 0)


def test_warm_up_is_discarded_unless_there_is_nothing_else() -> None:
    lines = [{"step": step, "seconds": 1.0 / step} for step in (1, 2, 4)]
    assert measure_speed(tell(*lines), discard_steps=1).steps_discarded == 1
    assert measure_speed(tell(*lines), discard_steps=50).steps_timed == 3


def test_without_seconds_the_lines_own_times_count_and_without_them_their_arrival() -> None:
    told = tell({"step": 1, "time": 10.0}, {"step": 3, "time": 11.0, "samples": 8})
    assert measure_speed(told, discard_steps=0).samples_per_s == 8.0
    seen = tell({"step": 1}, {"step": 2, "samples": 4}, {"step": 3, "samples": 4}, every_s=0.5)
    assert measure_speed(seen, discard_steps=0).step_s_median == 0.5


def test_lines_seen_at_once_are_timed_together() -> None:
    tally = tell({"step": 1})
    for step, now in ((2, 100.0), (3, 100.0), (5, 102.0)):
        tally.add(parse_line(json.dumps({"step": step, "samples": 10}).encode()), now=now)
    assert [(item.steps, item.seconds, item.samples) for item in tally.timed] == [(4, 2.0, 30.0)]


def test_numbers_that_were_not_told_are_none() -> None:
    speed = measure_speed(tell({"step": 1}, {"step": 2, "seconds": 1.0}), discard_steps=0)
    assert (speed.samples_per_s, speed.step_s_median) == (None, 1.0)
    assert measure_speed(Tally(), discard_steps=0).step_s_median is None


def test_a_record_is_whole_with_the_expected_steps_or_the_programs_own_word() -> None:
    assert find_shortfall(tell({"step": 5}), steps=5) == ""
    assert "last step in $WINDTUNNEL_METRICS is 4, expected 5" in find_shortfall(tell({"step": 4}), steps=5)
    assert find_shortfall(tell({"step": 5, "done": True}), steps=0) == ""
    assert find_shortfall(tell({"done": True}), steps=0) == ""
    assert 'does not say "done": true' in find_shortfall(tell({"step": 5}), steps=0)


def test_what_was_passed_over_is_counted_with_its_first_cause() -> None:
    tally = Tally()
    assert describe_passed_over(tally) == ()
    for number in (7, 9):
        tally.pass_over(f"cause {number}", number=number)
    assert describe_passed_over(tally) == ("2 lines of its metrics passed over (line 7: cause 7)",)
    assert find_shortfall(tally, steps=0) == "it told no step in $WINDTUNNEL_METRICS (line 7: cause 7)"
