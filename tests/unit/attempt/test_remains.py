from pathlib import Path

from windtunnel.attempt.remains import read_log_tails, read_rank_errors


def test_a_ranks_error_is_read_by_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "error-rank-2.json").write_text(
        '{"rank": 2, "type": "ValueError", "message": "x", "last_line": "ValueError: x", "secondary": true}'
    )
    (error,) = read_rank_errors(tmp_path)
    assert (error.rank, error.type, error.text, error.secondary) == (2, "ValueError", "ValueError: x", True)


def test_a_damaged_error_still_tells_that_its_rank_failed(tmp_path: Path) -> None:
    (tmp_path / "error-rank-0.json").write_text("{")
    (tmp_path / "error-rank-1.json").write_text("[]")
    assert [error.text for error in read_rank_errors(tmp_path)] == [
        "error-rank-0.json is damaged",
        "error-rank-1.json is damaged",
    ]


def test_a_logs_tail_is_its_last_line_with_text(tmp_path: Path) -> None:
    (tmp_path / "rank-1.log").write_bytes(b"begin\n" + b"x" * 20000 + b"\nthe disk is \xff gone\n\n")
    assert read_log_tails(tmp_path, 3) == {1: "the disk is \N{REPLACEMENT CHARACTER} gone"}
