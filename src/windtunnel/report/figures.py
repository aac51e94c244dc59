"""Plotly figures as plain JSON: data and layout. Colours of text and grid are the page's, by its theme. Pure."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel.records.trial import StepRecord
from windtunnel.report.rows import Row

CURVE_POINTS = 400
"""Points of a curve that are drawn; metrics.parquet has all of them."""
MOST_CURVES = 24
MOST_BARS = 40
"""Trials of a figure, the best ones, so that large studies stay readable; tables have all of them."""
# Okabe and Ito's colours, told apart by colour-blind readers, less the ones that vanish on white or black.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class Figure:
    """A figure of the page; `description` is read out in its place."""

    ident: str
    title: str
    description: str
    data: tuple[dict[str, Any], ...]
    layout: dict[str, Any]


def draw_loss_by_step(rows: Sequence[Row], steps: Mapping[str, Sequence[StepRecord]]) -> Figure | None:
    """Training loss against optimizer steps; of a step done twice after a restart, the last counts."""
    return _draw_loss(rows, steps, ident="loss-by-step", axis="Step", points=points_by_step)


def draw_loss_by_time(rows: Sequence[Row], steps: Mapping[str, Sequence[StepRecord]]) -> Figure | None:
    """Training loss against training time, attempts one after another, without their waits in the queue."""
    return _draw_loss(rows, steps, ident="loss-by-time", axis="Training time, s", points=points_by_time)


def draw_throughput(rows: Sequence[Row]) -> Figure | None:
    """Samples a second, with a bar down to what the 90th percentile of step times gives."""
    measured = [(row, speed) for row in rows if (speed := row.samples_per_s)]
    known = measured[:MOST_BARS]
    if not known:
        return None
    # The slowest tenth of steps gives 1 / (1 + spread) of the speed of the median one.
    drops = [speed * (1 - 1 / (1 + max(0.0, row.step_spread or 0.0))) for row, speed in known]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [html.escape(row.label) for row, _ in known],
        "x": [speed for _, speed in known],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [0.0] * len(drops),
            "arrayminus": drops,
            "color": PALETTE[1],
        },
        "marker": {"color": PALETTE[0]},
        "hovertemplate": "%{y}: %{x:,.0f} samples/s<extra></extra>",
    }
    layout = _bar_layout("Samples/s", len(known))
    title = _entitle("Training throughput", len(known), len(measured))
    return Figure("throughput", title, _list_values(known, "samples/s"), (trace,), layout)


def draw_latency(rows: Sequence[Row]) -> Figure | None:
    """p50, p99 and p99.9 of single-sample inference, on a logarithmic axis."""
    measured = [(row, row.latency) for row in rows if row.latency]
    known = measured[:MOST_BARS]
    if not known:
        return None
    names = [html.escape(row.label) for row, _ in known]
    marks = (
        ("p50", [r.p50_us for _, r in known], "circle"),
        ("p99", [r.p99_us for _, r in known], "diamond"),
        ("p99.9", [r.p999_us for _, r in known], "line-ns-open"),
    )
    data = tuple(
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "y": names,
            "x": values,
            "marker": {"color": PALETTE[i], "size": 11, "symbol": symbol, "line": {"width": 2, "color": PALETTE[i]}},
            "hovertemplate": f"%{{y}}: {name} %{{x:,.1f}} us<extra></extra>",
        }
        for i, (name, values, symbol) in enumerate(marks)
    )
    layout = _bar_layout("Microseconds, log scale", len(known))
    layout["xaxis"]["type"] = "log"
    layout["showlegend"] = True
    text = "; ".join(f"{row.label}: p50 {r.p50_us:,.0f}, p99 {r.p99_us:,.0f} us" for row, r in known)
    title = _entitle("Latency of one inference", len(known), len(measured))
    return Figure("latency", title, text, data, layout)


def points_by_step(steps: Sequence[StepRecord]) -> list[tuple[float, float]]:
    """(step, loss) in order of steps, one a step."""
    return sorted({float(record.step): record.loss for record in steps if record.loss is not None}.items())


def points_by_time(steps: Sequence[StepRecord]) -> list[tuple[float, float]]:
    """(seconds, loss) with each attempt's clock set behind the end of the one before."""
    offset, last, attempt = 0.0, 0.0, None
    points = []
    for record in steps:
        if attempt is not None and record.attempt != attempt:
            offset += last
        attempt, last = record.attempt, record.elapsed_s
        if record.loss is not None:
            points.append((offset + last, record.loss))
    return points


def thin_points(points: Sequence[tuple[float, float]], limit: int = CURVE_POINTS) -> list[tuple[float, float]]:
    """At most `limit` points, evenly picked, the first and the last among them."""
    if len(points) <= limit:
        return list(points)
    return [points[round(i * (len(points) - 1) / (limit - 1))] for i in range(limit)]


def _draw_loss(
    rows: Sequence[Row],
    steps: Mapping[str, Sequence[StepRecord]],
    *,
    ident: str,
    axis: str,
    points: Callable[[Sequence[StepRecord]], list[tuple[float, float]]],
) -> Figure | None:
    # A program may count its steps and tell no loss.
    recorded = [row for row in rows if points(steps.get(row.trial_id, ()))]
    curves = [(row, thin_points(points(steps[row.trial_id]))) for row in recorded[:MOST_CURVES]]
    if not curves:
        return None
    data = tuple(
        {
            "type": "scatter",
            "mode": "lines" if len(curve) > 1 else "markers",
            "name": html.escape(row.label),
            "x": [x for x, _ in curve],
            "y": [y if math.isfinite(y) else None for _, y in curve],
            "line": {"color": PALETTE[i % len(PALETTE)], "dash": DASHES[i // len(PALETTE) % len(DASHES)], "width": 2},
            "hovertemplate": "%{y:.4f}",
        }
        for i, (row, curve) in enumerate(curves)
    )
    layout = {
        "xaxis": {"title": {"text": axis}},
        "yaxis": {"title": {"text": "Training loss"}},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": -0.22},
        "height": 360 + 9 * len(curves),
        "margin": {"l": 64, "r": 16, "t": 12, "b": 48},
    }
    text = "; ".join(f"{row.label} ends at {curve[-1][1]:.4f}" for row, curve in curves)
    title = _entitle(f"Training loss by {'step' if axis == 'Step' else 'time'}", len(curves), len(recorded))
    return Figure(ident, title, text, data, layout)


def _entitle(title: str, shown: int, total: int) -> str:
    return title if shown == total else f"{title}, the first {shown} of {total} in the ranking"


def _bar_layout(axis: str, bars: int) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": axis}, "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "height": 110 + 30 * bars,
        "margin": {"l": 8, "r": 24, "t": 12, "b": 48},
        "showlegend": False,
        "legend": {"orientation": "h", "y": 1.1},
    }


def _list_values(known: Sequence[tuple[Row, float]], unit: str) -> str:
    return "; ".join(f"{row.label}: {value:,.0f} {unit}" for row, value in known)
