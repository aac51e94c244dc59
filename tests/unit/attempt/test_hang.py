"""Which rank all others waited for."""

import json
from dataclasses import asdict

from windtunnel.attempt.hang import Hang, describe_hang, read_hang
from windtunnel.records.hang import HangReport, name_hang_report, name_stacks


def _report(rank, step, phase):
    return HangReport(rank, f"n{rank}", step, phase, 12.34, 6.0)


def test_the_rank_that_stands_behind_the_others_is_the_suspect():
    hang = Hang((_report(0, 57, "backward"), _report(1, 57, "forward"), _report(2, 57, "backward")), ())
    assert describe_hang(hang) == (
        "hang: no step for 12.3 s, where 6.0 s are the most; suspect: rank 1 on n1, in forward of step 57; "
        "stacks of all ranks are beside their logs"
    )
    earlier = Hang((_report(0, 57, "backward"), _report(1, 56, "agree")), ())
    assert "suspect: rank 1 on n1, in agree of step 56" in describe_hang(earlier)


def test_a_rank_that_said_nothing_is_the_suspect():
    assert "suspect: rank 1, which did not even say where it stands" in describe_hang(
        Hang((_report(0, 57, "backward"),), (1,))
    )


def test_without_one_behind_the_others_nobody_is_accused():
    hang = Hang((_report(0, 57, "backward"), _report(1, 57, "backward")), ())
    assert "no rank stands behind the others: all are in backward of step 57" in describe_hang(hang)


def test_what_ranks_left_is_read_and_an_attempt_without_it_did_not_hang(tmp_path):
    assert read_hang(tmp_path, ranks=2) is None
    (tmp_path / name_hang_report(0)).write_text(json.dumps(asdict(_report(0, 3, "data"))))
    (tmp_path / name_hang_report(1)).write_text("{")
    assert read_hang(tmp_path, ranks=2) == Hang((_report(0, 3, "data"),), (1,))


def test_a_rank_stuck_without_python_leaves_its_stack_alone(tmp_path):
    (tmp_path / name_stacks(0)).write_text("Thread 0x1 (most recent call first):\n")
    hang = read_hang(tmp_path, ranks=1)
    assert hang is not None
    assert describe_hang(hang).startswith("hang: rank 0 was stuck where no Python runs")
