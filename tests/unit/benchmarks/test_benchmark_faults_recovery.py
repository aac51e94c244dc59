import os
import sys
from pathlib import Path

from benchmarks.faults_recovery import Place, Recovery, is_beyond, make_result, parse_place, read_words


def test_a_step_is_new_when_a_later_attempt_makes_one_that_none_had_made():
    before = Place(attempt=1, step=120)
    assert is_beyond(Place(2, 122), before)
    assert not is_beyond(Place(2, 120), before)
    assert not is_beyond(Place(1, 122), before)


def test_a_line_that_is_not_whole_is_no_place():
    assert parse_place('{"step": 12, "attempt": 3, "loss": 0.5}') == Place(3, 12)
    assert parse_place('{"step": 12, "atte') == parse_place("") == parse_place("12") == Place(0, 0)


def test_what_slurm_waited_is_no_part_of_a_recovery_by_requeue():
    killed = [Recovery(0.0, 1.0, 4.0, 5.0, seconds) for seconds in (6.0, 7.0, 8.0)]
    requeued = [Recovery(6.0, 7.0, 10.0, 11.0, 13.0)]
    result = make_result(killed, requeued, killed[1:])
    assert result.figures == {
        "recovery_in_allocation_s": 7.0,
        "recovery_requeue_extra_s": 7.0,
        "recovery_successor_s": 7.5,
    }
    assert list(result.cases.values()) == [3, 1, 2]


def test_a_process_tells_its_words_and_one_that_is_gone_has_none(tmp_path):
    assert read_words(tmp_path / "cmdline") == []
    assert read_words(Path(f"/proc/{os.getpid()}/cmdline"))[0] == sys.orig_argv[0]
