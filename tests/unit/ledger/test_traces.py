"""What attempts leave of their time, read back."""

import json
import os
from dataclasses import asdict

from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import append_event
from windtunnel.ledger.traces import read_goodput, read_trace
from windtunnel.records.goodput import TIMELINE, Bucket, Mark, Phase, Trace
from windtunnel.records.hang import HangReport, name_hang_report, name_stacks

MARKS = (Mark(Phase.RESTORE, 100.0, 0), Mark(Phase.TRAIN, 101.5, 7))


def _write(path, text, *, at=120.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))


def _lines(marks=MARKS):
    return "".join(json.dumps(asdict(mark)) + "\n" for mark in marks)


def _report(rank, silent_s):
    return json.dumps(asdict(HangReport(rank, "n0", 8, "forward", silent_s, 6.0)))


def test_marks_are_read_and_torn_or_strange_lines_passed_over(tmp_path):
    text = _lines() + '{"phase":"train","at":1\n{"phase":"dance","at":1.0,"step":1}\n[1]\n{"phase":"st'
    _write(tmp_path / "1" / TIMELINE, text)
    assert read_trace(tmp_path / "1") == Trace(MARKS, last_sign=120.0)


def test_an_attempt_without_a_folder_left_nothing(tmp_path):
    assert read_trace(tmp_path / "1") == Trace()


def test_a_hang_began_when_the_first_rank_stood_still(tmp_path):
    _write(tmp_path / name_hang_report(0), _report(0, 6.5), at=120.0)
    _write(tmp_path / name_hang_report(1), _report(1, 6.0), at=118.0)
    _write(tmp_path / name_stacks(1), "Thread 1", at=118.0)
    assert read_trace(tmp_path).hung_since == 112.0


def test_stacks_alone_tell_of_a_hang_of_which_the_beginning_is_not_known(tmp_path):
    _write(tmp_path / name_stacks(0), "")
    assert read_trace(tmp_path).hung_since is None
    _write(tmp_path / name_stacks(0), "Thread 1")
    assert read_trace(tmp_path).hung_since == 0.0


def test_the_settings_file_of_a_program_tells_that_it_is_not_our_trainer(tmp_path):
    _write(tmp_path / "settings.json", "{}")
    assert read_trace(tmp_path).foreign


def test_a_trial_s_time_is_read_from_its_folder(tmp_path):
    folder = TrialFolder(tmp_path)
    started = append_event(folder.path, "started", attempt=1)
    marks = [Mark(Phase.TRAIN, started.at, 0), Mark(Phase.TRAIN, started.at + 4.0, 8)]
    _write(folder.attempt(1) / TIMELINE, _lines(marks), at=started.at + 6.0)
    goodput = read_goodput(folder, read_facts(folder, steps=8), now=started.at + 50.0)
    assert (round(goodput.wall_s, 3), goodput.new_steps, round(goodput.steps_per_s, 3)) == (6.0, 8, 2.0)
    assert round(goodput.seconds[Bucket.REPLAY], 3) == 2.0
