import json
from dataclasses import asdict
from pathlib import Path

import pytest

from windtunnel.launch.progress import Progress, parse_step
from windtunnel.records.trial import StepRecord


def line(step: int) -> str:
    return json.dumps(asdict(StepRecord(step, 1, 0.6931, 1e-3, 4210.4, 0.01, 1.0))) + "\n"


def test_news_is_the_newest_step_once(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    progress = Progress(metrics, 200)
    assert progress.news() == ""
    metrics.write_text(line(10) + line(120))
    assert progress.news() == "step 120/200 loss 0.6931 4,210 samples/s"
    assert progress.news() == ""


def test_news_comes_not_more_than_every_two_seconds(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(line(10))
    progress = Progress(metrics, 200)
    assert progress.news()
    with metrics.open("a") as file:
        file.write(line(20))
    assert progress.news() == ""
    progress._said_at -= 2
    assert progress.news().startswith("step 20/200")


def test_what_was_there_before_is_no_news(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(line(10))
    progress = Progress(metrics, 200)
    progress.skip_past()
    assert progress.news() == ""


def test_a_file_that_a_resumed_attempt_cut_short_is_followed_again(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text("".join(line(step) for step in range(100, 110)))
    progress = Progress(metrics, 200)
    progress.skip_past()
    metrics.write_text(line(100) + line(101))
    assert progress.news().startswith("step 101/200")


def test_of_a_long_file_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = tmp_path / "metrics.jsonl"
    with metrics.open("wb") as file:
        file.truncate(1 << 40)  # a hole: reading it all would take the machine's memory
    with metrics.open("a") as file:
        file.write("\n" + line(120))
    progress = Progress(metrics, 200)
    progress.skip_past()
    assert (progress.read_last_step(), progress.news()) == (120, "")


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(line(10)[:20])
    progress = Progress(metrics, 200)
    assert progress.news() == ""
    metrics.write_text(line(10))
    assert progress.news().startswith("step 10/200")


def test_a_line_that_is_no_record_is_passed_over() -> None:
    assert parse_step(b'{"step": 1}') is None
    assert parse_step(b"\xff") is None
