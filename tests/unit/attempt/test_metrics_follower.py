import json
from pathlib import Path

from windtunnel.attempt.metrics import MetricsFollower
from windtunnel.attempt.protocol import MAX_LINE_BYTES


def read_target(follower: MetricsFollower) -> list[dict[str, object]]:
    return [json.loads(line) for line in follower.target.read_text().splitlines()]


def test_lines_become_the_trials_own_as_they_come(tmp_path: Path) -> None:
    follower = MetricsFollower(tmp_path / "theirs", tmp_path / "ours", attempt=2)
    follower.poll()
    follower.source.write_text('{"step": 1, "loss": 2}\n{"step": 2, "lo')
    follower.finish()
    assert read_target(follower)[0] | {"elapsed_s": 0.0} == {
        "step": 1,
        "attempt": 2,
        "loss": 2.0,
        "learning_rate": None,
        "samples_per_s": None,
        "step_s": None,
        "elapsed_s": 0.0,
        "phases_s": None,
    }
    assert (follower.tally.passed_over, follower.tally.first_problem) == (1, "line 2: not JSON, or cut off")


def test_a_last_line_without_its_newline_counts(tmp_path: Path) -> None:
    follower = MetricsFollower(tmp_path / "theirs", tmp_path / "ours", attempt=1)
    follower.source.write_text('{"step": 1}\n\n{"done": true}')
    assert follower.finish().done
    assert len(read_target(follower)) == 1


def test_a_line_without_end_costs_no_memory_and_is_passed_over(tmp_path: Path) -> None:
    follower = MetricsFollower(tmp_path / "theirs", tmp_path / "ours", attempt=1)
    follower.source.write_bytes(b'{"step": 1}\n{"step": ' + b"2" * (3 << 20) + b'}\n{"step": 3}\n')
    tally = follower.finish()
    assert (tally.last_step, tally.passed_over) == (3, 1)
    assert f"longer than {MAX_LINE_BYTES} bytes" in tally.first_problem


def test_metrics_that_cannot_be_kept_still_count(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    follower = MetricsFollower(tmp_path / "theirs", tmp_path / "ours", attempt=1)
    follower.source.write_text('{"step": 4, "done": true}\n')
    assert follower.finish().last_step == 4
