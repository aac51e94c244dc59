"""A study's state as people read it: a headline, who drives it, and a line a trial. Pure."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from windtunnel.cost import format_node_hours, price
from windtunnel.launch.overview import StudyView
from windtunnel.launch.views import TrialView
from windtunnel.ledger.lease import Holder
from windtunnel.units import format_seconds

_HEADERS = (
    "trial",
    "name",
    "state",
    "nodes",
    "step",
    "loss",
    "valid.",
    "samples/s",
    "left",
    "tries",
    "node-h",
    "why",
)
_RIGHT = frozenset({"step", "loss", "valid.", "samples/s", "left", "tries", "node-h"})
_NAME_CHARS = 44
_WHY_CHARS = 90
_ORDER = {"RUNNING": 0, "UNSURE": 1, "QUEUED": 2, "NEW": 3}
"""What is watched first, where not all lines fit."""


def render_board(view: StudyView, *, lines: int | None = None) -> str:
    """The whole board; with `lines` what fits into so many, those under way first."""
    head = [render_headline(view), render_driver(view)]
    if view.problem:
        head.append(view.problem)
    shown = _choose(view.trials, None if lines is None else max(1, lines - len(head) - 3))
    table = _render_table([_cells(trial) for trial in shown])
    left = len(view.trials) - len(shown)
    more = [f"... and {left:,} more: windtunnel status {view.study}"] if left else []
    return "\n".join([*head, "", *table, *more])


def render_headline(view: StudyView) -> str:
    """`quickstart: 8 trials: 5 COMPLETED, 2 RUNNING, 1 QUEUED; 0.52 node-hours`."""
    counts = ", ".join(f"{count:,} {state}" for state, count in view.count_states().items()) or "none"
    pruned = f", {view.pruned} pruned" if view.pruned else ""
    noun = "trial" if len(view.trials) == 1 else "trials"
    return f"{view.study}: {len(view.trials):,} {noun}: {counts}{pruned}; {view.cost}{_render_left(view)}"


def render_driver(view: StudyView) -> str:
    """Who drives the study; or that nobody does, and what to type."""
    if view.driver is not None:
        said = f"; its log: {view.log}" if view.log else ""
        return f"driven by {render_holder(view.driver)}{said}"
    if view.waiting:
        return view.waiting
    if view.published:
        return "all verdicts are final; nobody need drive it"
    return f"nobody drives it: `{view.command}` goes on with it"


def render_holder(holder: Holder) -> str:
    """`pid 12 on host login1 (job 345) since 2026-01-31 12:00:00+00:00`."""
    since = datetime.fromtimestamp(holder.since, UTC).isoformat(sep=" ", timespec="seconds")
    job = f" (job {holder.job_id})" if holder.job_id else ""
    return f"pid {holder.pid} on host {holder.host}{job} since {since}"


def to_json(view: StudyView) -> dict[str, Any]:
    """The view as JSON's own types, with the counts of states; a number that is not finite is null."""
    plain = {name: _null_not_finite(value) for name, value in asdict(view).items()}
    return {**plain, "states": view.count_states(), "open": view.open, "read_at": time.time()}


def _null_not_finite(plain: Any) -> Any:
    # JSON has no NaN and no Infinity: programs other than Python's refuse them.
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, dict):
        return {name: _null_not_finite(value) for name, value in plain.items()}
    return [_null_not_finite(value) for value in plain] if isinstance(plain, list | tuple) else plain


def _render_left(view: StudyView) -> str:
    left = [trial.eta_s for trial in view.trials if trial.eta_s is not None]
    return f"; the running ones need {format_seconds(max(left))} more" if left else ""


def _choose(trials: Sequence[TrialView], limit: int | None) -> Sequence[TrialView]:
    if limit is None or len(trials) <= limit:
        return trials
    return sorted(trials, key=lambda trial: (trial.final, _ORDER.get(trial.state, 4)))[:limit]


def _cells(trial: TrialView) -> tuple[str, ...]:
    of = f"/{trial.steps}" if trial.steps else ""
    return (
        trial.trial_id[:8],
        _cut(trial.name, _NAME_CHARS),
        trial.state,
        trial.hosts or str(trial.nodes),
        f"{trial.step}{of}" if trial.step is not None else "",
        _number(trial.loss, ".4g"),
        _number(trial.validation_loss, ".4g"),
        _number(trial.samples_per_s, ",.0f"),
        format_seconds(trial.eta_s) if trial.eta_s is not None else "",
        str(trial.attempts or ""),
        format_node_hours(price(trial.node_seconds, per_node_hour=0, currency="").node_hours),
        "" if trial.state == "COMPLETED" else _cut(trial.reason, _WHY_CHARS),
    )


def _render_table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    columns = list(zip(_HEADERS, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    pads = [str.rjust if header in _RIGHT else str.ljust for header in _HEADERS]
    lines = [_HEADERS, *rows]
    return [
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."
