from dataclasses import replace

import pytest
from benchmarks.faults_matrix import cases
from benchmarks.faults_matrix.bed import Attempt
from benchmarks.faults_matrix.journal import DONE, RESUMED, SAVED, STEP, Event, Journal, Order, read_journal
from benchmarks.faults_matrix.model import Fault, parse_faults
from benchmarks.faults_matrix.outcome import (
    SILENT,
    count_outcomes,
    count_repeated,
    describe_exactness,
    describe_found,
    describe_resume,
    is_intact,
    name_reason,
)
from benchmarks.faults_matrix.run import CASES
from benchmarks.faults_matrix.sides import SIDES


def attempt(*events, code=0, log=""):
    return Attempt((code,), tuple(Event(*event) for event in events), log, 1.0)


BEFORE_FAULT = attempt((1, RESUMED, 0), (1, SAVED, 10, "ten"), (1, STEP, 12))
AFTER = attempt((2, RESUMED, 10, "ten"), (2, DONE, 30, "end"))


def test_faults_are_read_from_their_short_form():
    assert parse_faults("13:KILL,18:NAN@1") == (Fault(13, "KILL"), Fault(18, "NAN", 1))
    assert parse_faults("") == ()


def test_what_was_lost_is_counted_from_the_last_step_before():
    assert describe_resume(BEFORE_FAULT, AFTER, intact=True) == "lost 2 of 12 steps"
    assert describe_resume(BEFORE_FAULT, AFTER, intact=False) == SILENT
    fresh = attempt((2, RESUMED, 0), (2, DONE, 30, "end"))
    assert describe_resume(BEFORE_FAULT, fresh, intact=True) == "begins at step 0"
    stopped = attempt(code=1, log="Traceback\npickle.UnpicklingError: truncated\n")
    assert describe_resume(BEFORE_FAULT, stopped, intact=True) == "stops (UnpicklingError)"


def test_damage_is_found_by_a_stop_or_by_an_older_state():
    older = attempt((2, RESUMED, 5, "five"), (2, DONE, 30, "end"))
    assert describe_found(BEFORE_FAULT, older, newest=10, intact=True) == "found: lost 7 of 12 steps"
    assert describe_found(BEFORE_FAULT, AFTER, newest=10, intact=False) == SILENT
    assert describe_found(BEFORE_FAULT, attempt(code=1), newest=10, intact=True) == "found: stops (exit code 1)"


def test_a_state_is_intact_when_it_is_one_that_was_saved_at_its_step():
    assert is_intact(AFTER, BEFORE_FAULT.events, None)
    mixed = attempt((2, RESUMED, 10, "of five and ten"), (2, DONE, 30, "end"))
    assert not is_intact(mixed, BEFORE_FAULT.events, None)


def test_a_side_that_tells_no_state_is_judged_by_its_end():
    whole = attempt((1, RESUMED, 0), (1, DONE, 30, "end"))
    assert is_intact(AFTER, (), whole)
    assert not is_intact(AFTER, (), replace(whole, events=(Event(1, DONE, 30, "another end"),)))
    assert describe_exactness(AFTER, whole) == "resumed exactly"


def test_samples_that_come_twice_or_never_are_counted_within_the_epoch():
    first = [Event(1, STEP, 1, rows=(0, 1)), Event(1, STEP, 2, rows=(2, 3)), Event(1, STEP, 3, rows=(4, 5))]
    after = attempt((2, RESUMED, 2), (2, STEP, 3, "", (2, 4)))
    assert count_repeated([*first, *after.events], after, epoch_steps=3) == (1, 1)


def test_the_rarest_of_several_outcomes_comes_first():
    assert count_outcomes(["a", "a"]) == "a (2 of 2)"
    assert count_outcomes(["a", "b", "a"]) == "b (1 of 3); a (2 of 3)"


def test_an_error_of_ours_is_told_by_the_beginning_of_its_message():
    log = "ValueError: of before\nwindtunnel: " + "word " * 30
    assert name_reason(attempt(code=2, log=log)) == " ".join(["word"] * 12) + " …"


def test_a_folder_and_the_details_of_an_error_of_ours_are_left_out():
    log = "windtunnel: none of the 2 checkpoints in /a/b verifies: step-00000010: block 0 is not"
    assert name_reason(attempt(code=2, log=log)) == "none of the 2 checkpoints verifies"


def test_a_save_is_killed_within_its_middle_write_and_before_all_else():
    operations = ["open", "write", "write", "write", "fsync", "rename"]
    moments = [(3, cases.WITHIN), (1, cases.BEFORE), (5, cases.BEFORE), (6, cases.BEFORE), (1, cases.AFTER)]
    assert cases.choose_points(operations) == moments


def test_a_journal_is_read_back_as_it_was_written(tmp_path):
    Journal(Order(str(tmp_path), attempt=2)).add(STEP, 3, rows=[1, 2])
    assert read_journal(tmp_path) == [Event(2, STEP, 3, rows=(1, 2))]
    assert read_journal(tmp_path / "none") == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_excuses_are_of_sides_that_there_are_and_never_of_all(case):
    assert set(case.excused) < {side.name for side in SIDES}
