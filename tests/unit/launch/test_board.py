import json
from dataclasses import replace

from fake_trials import make_trial
from watched_study import end, lay_out
from windtunnel.launch.board import render_board, render_headline, to_json
from windtunnel.launch.overview import read_study
from windtunnel.records.trial import Verdict


def look(root, count=3):
    trials = [make_trial(f"{number}") for number in range(count)]
    study = lay_out(root, trials)
    end(root, trials[0], Verdict.COMPLETED)
    end(root, trials[1], Verdict.FAILED, "rank 0: ValueError:\n  no such loss")
    return read_study(study)


def test_the_board_has_a_headline_who_drives_and_a_line_a_trial(tmp_path):
    lines = render_board(look(tmp_path)).splitlines()
    assert lines[0].startswith("study: 3 trials: 1 COMPLETED, 1 FAILED, 1 NEW; 0.")
    assert lines[1] == "nobody drives it: `windtunnel sweep study` goes on with it"
    assert lines[3].split()[:4] == ["trial", "name", "state", "nodes"]
    assert len(lines) == 7
    assert lines[5].endswith("rank 0: ValueError: no such loss")


def test_where_not_all_lines_fit_what_is_open_comes_first(tmp_path):
    board = render_board(look(tmp_path, count=40), lines=12).splitlines()
    assert len(board) <= 12
    assert " NEW " in board[4]
    assert board[-1] == "... and 33 more: windtunnel status study"


def test_json_holds_all_that_the_table_does(tmp_path):
    view = look(tmp_path)
    plain = json.loads(json.dumps(to_json(view)))
    assert plain["states"] == {"COMPLETED": 1, "FAILED": 1, "NEW": 1}
    assert plain["trials"][1]["reason"].startswith("rank 0: ValueError")
    assert (plain["open"], plain["driver"], plain["cost"]["money"]) == (1, None, None)
    assert render_headline(view).startswith(plain["study"])


def test_json_has_null_for_a_number_that_is_not_finite(tmp_path):
    view = look(tmp_path)
    trials = tuple(replace(trial, loss=float("nan"), samples_per_s=float("inf")) for trial in view.trials)
    plain = json.loads(json.dumps(to_json(replace(view, trials=trials)), allow_nan=False))
    assert [(trial["loss"], trial["samples_per_s"]) for trial in plain["trials"]] == [(None, None)] * 3
