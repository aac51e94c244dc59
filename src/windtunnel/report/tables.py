"""The page's tables about trials as a whole: ranking, configurations, failures, prunings, cost. Pure."""

from collections.abc import Sequence

from windtunnel.cost import Cost, add_costs, format_money, format_node_hours
from windtunnel.records.plan import Pruned
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.report.compare import Candidate, Ranking
from windtunnel.report.markup import Cell, Column, Html, render_table
from windtunnel.report.rows import WAITING, Row
from windtunnel.report.wording import (
    CRITERION_NAMES,
    NONE,
    describe_check,
    format_loss,
    format_number,
    format_percent,
    format_value,
)
from windtunnel.units import format_count, format_seconds

_QUIET = frozenset({WAITING, Verdict.PRUNED.value, Verdict.SKIPPED.value})


def render_ranking(ranking: Ranking) -> Html:
    """One row per trial, in order of rank; sortable and filterable."""
    priced = any(row.cost.money is not None for row in ranking.rows)
    columns = [
        Column("Rank", True, f"By {CRITERION_NAMES[ranking.criterion]}; repeats of a configuration share a rank"),
        Column("Trial"),
        Column("Verdict"),
        Column("Val. loss", True, "Validation loss: after the last step, on the validation range"),
        Column("Accuracy", True, "Share of signs that were right, on the validation range"),
        Column("Samples/s", True, "Measured: global batch over the median step time, warm-up discarded"),
        Column("Step p50, ms", True, "Measured: median step time, warm-up discarded"),
        Column("Step p90, ms", True, "Measured: 90th percentile, warm-up discarded"),
        Column("Latency p50, us", True, "Measured: latency of one inference"),
        Column("Latency p99, us", True, "Measured: latency of one inference"),
        Column("Latency p99.9, us", True, "Measured: latency of one inference"),
        Column("Params", True, "Trainable parameters, counted"),
        Column("Node-hours", True, "Measured: nodes times wall time, all attempts"),
        *([Column("Cost", True, "Node-hours times the price of a node")] if priced else []),
        Column("Checkpoint", hint="Every byte of the final checkpoint against its manifest"),
    ]
    return render_table(
        columns,
        [_ranking_cells(row, ranking, priced=priced) for row in ranking.rows],
        caption="All trials, best first",
        ident="ranking",
        row_keys=[row.verdict for row in ranking.rows],
    )


def render_configurations(ranking: Ranking) -> Html:
    """Median, spread and count of each configuration that has repeats."""
    first = ranking.candidates[0]
    columns = [
        Column("Rank", True),
        Column("Configuration"),
        Column(f"Median {CRITERION_NAMES[ranking.criterion]}", True),
        Column("Spread (IQR)", True, "Difference of the 75th and 25th percentile over repeats"),
        Column("Repeats", True),
        Column("Against the first"),
    ]
    rows = [
        [
            Cell(str(c.rank), c.rank),
            Cell(c.name),
            Cell(format_value(c.value, ranking.criterion, c.rows[0]), c.value),
            Cell(format_value(c.spread, ranking.criterion, c.rows[0]) if c.repeats > 1 else NONE, c.spread),
            Cell(str(c.repeats), c.repeats),
            Cell(
                "first" if c is first else _against(ranking, first, c),
                tone="" if c is first else "muted",
            ),
        ]
        for c in ranking.candidates
    ]
    return render_table(columns, rows, caption="Configurations: repeats taken together")


def render_failures(rows: Sequence[Row]) -> Html:
    """Every trial without a result, with its cause."""
    columns = [
        Column("Trial"),
        Column("Verdict"),
        Column("Cause"),
        Column("Attempts", True),
        Column("Node-hours", True),
    ]
    cells = [
        [
            Cell(row.label),
            _verdict_cell(row),
            Cell(row.evidence or "no cause was recorded", tone="wrap"),
            Cell(str(row.attempts), row.attempts),
            Cell(format_node_hours(row.cost.node_hours), row.cost.node_hours),
        ]
        for row in rows
    ]
    return render_table(columns, cells, caption="Trials that did not complete")


def render_lost_attempts(pairs: Sequence[tuple[Row, AttemptEnd]]) -> Html:
    """Attempts that ended early, of trials that completed all the same."""
    columns = [Column("Trial"), Column("Attempt", True), Column("Ended"), Column("Cause"), Column("Wall time", True)]
    cells = [
        [
            Cell(row.label),
            Cell(str(end.attempt), end.attempt),
            Cell(end.verdict.value, tone="warn"),
            Cell(end.evidence, tone="wrap"),
            Cell(format_seconds(end.wall_s), end.wall_s),
        ]
        for row, end in pairs
    ]
    return render_table(columns, cells, caption="Attempts that were lost on the way to a completed trial")


def render_pruned(pruned: Sequence[Pruned]) -> Html:
    """Combinations that were refused before anything ran."""
    cells = [[Cell(item.name), Cell(item.reason, tone="wrap")] for item in pruned]
    return render_table([Column("Combination"), Column("Reason")], cells, caption="Combinations that were not run")


def render_cost(rows: Sequence[Row], currency: str) -> Html:
    """Node-hours a trial and in total, the share of attempts that did not finish apart."""
    priced = all(row.cost.money is not None for row in rows)
    money = [Column("Cost", True), Column("Of it lost", True)] if priced else []
    columns = [
        Column("Trial"),
        Column("Attempts", True),
        Column("Node-hours", True, "Nodes times wall time, all attempts"),
        Column("In attempts that did not finish", True),
        *money,
    ]
    cells = [[Cell(r.label), Cell(str(r.attempts), r.attempts), *_cost_cells(r.cost, r.lost, priced)] for r in rows]
    total = add_costs((row.cost for row in rows), currency=currency)
    lost = add_costs((row.lost for row in rows), currency=currency)
    attempts = sum(row.attempts for row in rows)
    cells.append([Cell("Total", tone="total"), Cell(str(attempts), attempts), *_cost_cells(total, lost, priced)])
    return render_table(columns, cells, caption="Cost, measured by wall time")


def _ranking_cells(row: Row, ranking: Ranking, *, priced: bool) -> list[Cell]:
    rank = ranking.rank_of(row)
    outcome, latency = row.outcome, row.latency
    params = outcome.params if outcome else None
    latencies = [latency.p50_us, latency.p99_us, latency.p999_us] if latency else [None] * 3
    money = [Cell(format_money(row.cost.money or 0.0, row.cost.currency), row.cost.money)] if priced else []
    check_tones = {"verified": "good", "damaged": "bad"}
    check = describe_check(row)
    return [
        Cell(NONE if rank is None else str(rank), rank),
        Cell(row.label, tone="name"),
        _verdict_cell(row),
        Cell(format_loss(row.validation_loss), row.validation_loss),
        Cell(format_percent(row.accuracy), row.accuracy),
        Cell(format_number(row.samples_per_s), row.samples_per_s),
        *[Cell(format_number(value), value) for value in (*row.step_times_ms, *latencies)],
        Cell(format_count(params) if params is not None else NONE, params),
        Cell(format_node_hours(row.cost.node_hours), row.cost.node_hours),
        *money,
        Cell(check, tone=check_tones.get(check, "muted")),
    ]


def _verdict_cell(row: Row) -> Cell:
    tone = "good" if row.completed else "muted" if row.verdict in _QUIET else "bad"
    return Cell(row.verdict.lower().replace("_", " "), tone=tone)


def _against(ranking: Ranking, leader: Candidate, other: Candidate) -> str:
    if ranking.noise.threshold is None:
        return "noise unknown"
    return "cannot tell" if ranking.noise.hides(leader.value, other.value, name=other.name) else "worse"


def _cost_cells(cost: Cost, lost: Cost, priced: bool) -> list[Cell]:
    cells = [Cell(format_node_hours(part.node_hours), part.node_hours) for part in (cost, lost)]
    if priced:
        cells += [Cell(format_money(part.money or 0.0, part.currency), part.money) for part in (cost, lost)]
    return cells
