"""Rank 0's marks."""

import os
import time

from windtunnel.ledger.traces import read_marks
from windtunnel.records.goodput import TIMELINE, Phase
from windtunnel.training.timeline import Timeline


def test_marks_stand_at_once_in_order_and_in_the_time_of_day(tmp_path):
    before = time.time()
    timeline = Timeline(tmp_path)
    timeline.mark(Phase.RESTORE, 0)
    timeline.mark(Phase.TRAIN, 7)
    marks = read_marks(tmp_path / TIMELINE)
    assert [(mark.phase, mark.step) for mark in marks] == [(Phase.RESTORE, 0), (Phase.TRAIN, 7)]
    assert before - 0.01 <= marks[0].at <= marks[1].at <= time.time() + 0.01


def test_a_clock_that_is_set_meanwhile_changes_no_length(tmp_path, monkeypatch):
    timeline = Timeline(tmp_path)
    timeline.mark(Phase.TRAIN, 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    timeline.mark(Phase.TRAIN, 1)
    first, second = read_marks(tmp_path / TIMELINE)
    assert 0.0 <= second.at - first.at < 5.0


def test_ranks_without_a_folder_leave_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Timeline().mark(Phase.TRAIN, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_mark_that_cannot_be_written_stops_nobody_and_spoils_no_other(tmp_path, monkeypatch):
    timeline = Timeline(tmp_path)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
        timeline.mark(Phase.TRAIN, 1)
    timeline.mark(Phase.TRAIN, 2)
    assert [mark.step for mark in read_marks(tmp_path / TIMELINE)] == [2]
    assert Timeline(tmp_path / "not there").mark(Phase.TRAIN, 3) is None
