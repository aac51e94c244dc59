"""The ranking as a terminal shows it: aligned columns, numbers to the right. Pure."""

from collections.abc import Sequence

from windtunnel.cost import format_node_hours
from windtunnel.report.compare import Ranking
from windtunnel.report.rows import Row
from windtunnel.report.wording import (
    NONE,
    describe_certainty,
    describe_check,
    describe_decision,
    describe_state,
    format_loss,
    format_number,
    format_percent,
)

HEADINGS = (
    "rank",
    "trial",
    "verdict",
    "val loss",
    "accuracy",
    "samples/s",
    "step ms",
    "p99 us",
    "node-h",
    "checkpoint",
)
_LEFT = frozenset({"trial", "verdict", "checkpoint"})


def render_terminal(ranking: Ranking) -> str:
    """Ranking table, decision and certainty, ready to print."""
    lines = [align_columns(HEADINGS, [_fields(row, ranking) for row in ranking.rows])] if ranking.rows else []
    lines += [describe_state(ranking), describe_decision(ranking), describe_certainty(ranking)]
    return "\n".join(line for line in lines if line)


def align_columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest field, a rule under the headings."""
    widths = [max(len(fields[i]) for fields in (headings, *rows)) for i in range(len(headings))]
    rule = ["-" * width for width in widths]
    lines = []
    for fields in (headings, rule, *rows):
        cells = [
            field.ljust(width) if heading in _LEFT else field.rjust(width)
            for field, width, heading in zip(fields, widths, headings, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _fields(row: Row, ranking: Ranking) -> tuple[str, ...]:
    rank = ranking.rank_of(row)
    return (
        NONE if rank is None else str(rank),
        row.label,
        row.verdict.lower(),
        format_loss(row.validation_loss),
        format_percent(row.accuracy),
        format_number(row.samples_per_s),
        format_number(row.step_times_ms[0]),
        format_number(row.latency.p99_us if row.latency else None),
        format_node_hours(row.cost.node_hours),
        describe_check(row),
    )
