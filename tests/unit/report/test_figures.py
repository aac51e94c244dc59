import json
import math

import plotly.graph_objects as go

from fabricated_study import Fake, make_ranking, make_steps
from windtunnel.records.trial import StepRecord
from windtunnel.report.figures import (
    CURVE_POINTS,
    draw_latency,
    draw_loss_by_step,
    draw_loss_by_time,
    draw_throughput,
    points_by_step,
    points_by_time,
    thin_points,
)
from windtunnel.report.page import embed_json

CHEAP, DEAR = Fake("cheap"), Fake("dear", loss=0.95)


def step(number, *, attempt=1, loss=1.0, elapsed_s=1.0):
    return StepRecord(number, attempt, loss, 1e-3, 100.0, 0.1, elapsed_s)


def test_every_figure_is_one_that_plotly_accepts():
    rows = make_ranking(CHEAP, DEAR).rows
    steps = {row.trial_id: tuple(make_steps(CHEAP)) for row in rows}
    drawn = [
        draw_loss_by_step(rows, steps),
        draw_loss_by_time(rows, steps),
        draw_throughput(rows),
        draw_latency(rows),
    ]
    for figure in drawn:
        go.Figure(data=list(figure.data), layout=figure.layout)
        assert "cheap" in figure.description


def test_nothing_to_draw_draws_nothing():
    assert draw_throughput(()) is draw_latency(()) is draw_loss_by_step((), {}) is None


def test_a_large_study_draws_its_best_and_says_so():
    rows = make_ranking(*(Fake(f"m{i}", loss=0.5 + i / 1000) for i in range(50))).rows
    steps = {row.trial_id: (step(10),) for row in rows}
    curves, bars = draw_loss_by_step(rows, steps), draw_throughput(rows)
    assert [trace["name"] for trace in curves.data] == [f"m{i}" for i in range(24)]
    assert curves.title == "Training loss by step, the first 24 of 50 in the ranking"
    assert len(bars.data[0]["x"]) == 40


def test_a_step_done_again_after_a_restart_counts_once():
    records = [step(10, loss=3.0), step(20, loss=2.0), step(20, attempt=2, loss=1.9), step(30, attempt=2, loss=1.0)]
    assert points_by_step(records) == [(10, 3.0), (20, 1.9), (30, 1.0)]


def test_attempts_follow_each_other_in_time():
    records = [step(10, elapsed_s=5), step(20, elapsed_s=9), step(20, attempt=2, elapsed_s=4)]
    assert [seconds for seconds, _ in points_by_time(records)] == [5, 9, 13]


def test_long_curves_are_thinned_with_both_ends_kept():
    points = [(float(i), 0.0) for i in range(5000)]
    thin = thin_points(points)
    assert len(thin) == CURVE_POINTS
    assert (thin[0], thin[-1]) == (points[0], points[-1])


def test_a_loss_that_is_no_number_leaves_a_gap_and_valid_json():
    (row,) = make_ranking(CHEAP).rows
    figure = draw_loss_by_step((row,), {row.trial_id: (step(10), step(20, loss=math.nan))})
    assert figure.data[0]["y"] == [1.0, None]
    assert json.loads(embed_json({"a": figure}))["a"]["data"][0]["y"] == [1.0, None]


def test_a_program_that_tells_no_loss_has_no_curve():
    (row,) = make_ranking(CHEAP).rows
    assert draw_loss_by_step((row,), {row.trial_id: (step(10, loss=None), step(20, loss=None))}) is None


def test_names_cannot_end_the_script_or_become_markup():
    (row,) = make_ranking(Fake("</script><b>x</b>")).rows
    text = embed_json({"a": draw_throughput((row,))})
    assert "<" not in text
    assert json.loads(text)["a"]["data"][0]["y"] == ["&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;"]
