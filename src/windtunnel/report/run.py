"""The report stage: reads a study's artifacts, and publishes report.html and metrics.parquet."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.artifacts import hash_json, read_provenance, write_atomic
from windtunnel.report.collect import Collected, Inputs, read_inputs
from windtunnel.report.compare import Ranking, rank_rows
from windtunnel.report.facts import find_old
from windtunnel.report.figures import Figure, draw_latency, draw_loss_by_step, draw_loss_by_time, draw_throughput
from windtunnel.report.metrics import encode_metrics
from windtunnel.report.page import render_page
from windtunnel.report.rows import build_rows
from windtunnel.report.sections import Page
from windtunnel.report.terminal import render_terminal
from windtunnel.settings.study import ReportStageSettings


def run_report(  # noqa: PLR0913 - each input is an edge of the DAG with its own name
    settings: ReportStageSettings,
    *,
    plan: Path,
    sweep: Path,
    checkpoints: Path | None,
    latency: Path | None,
    models: Path | None,
    topology: Path | None,
    collectives: Path | None,
    device: Path | None,
    benchmarks: Sequence[Path],
    out: Path,
    metrics: Path,
) -> None:
    """Write the page at `out` and the numbers at `metrics`, and print the ranking.

    A missing input, or a sweep that is not finished, gives a page that says so.
    """
    inputs = Inputs(
        plan, sweep, checkpoints, latency, models, topology, collectives, device, benchmarks=tuple(benchmarks)
    )
    collected = read_inputs(settings.study, inputs)
    ranking = rank_rows(build_rows(collected, settings.cluster), settings.report.rank_by)
    provenance = {**read_provenance(), "settings_hash": hash_json(settings)}
    numbers = encode_metrics(ranking, steps=collected.steps, stages=collected.stages, meta=provenance)
    write_atomic(metrics, numbers)
    write_atomic(out, render_page(_lay_out(settings, collected, ranking), provenance).encode())
    print(render_terminal(ranking), flush=True)
    print(f"report:  {out}\nmetrics: {metrics}", flush=True)


def _lay_out(settings: ReportStageSettings, collected: Collected, ranking: Ranking) -> Page:
    old = find_old(collected.stamps, max_age_days=settings.cluster.max_age_days, now=datetime.now(UTC))
    return Page(
        title=settings.report.title or settings.study,
        collected=collected,
        ranking=ranking,
        figures=_draw(collected, ranking),
        currency=settings.cluster.currency,
        warnings=tuple(old),
    )


def _draw(collected: Collected, ranking: Ranking) -> dict[str, Figure]:
    drawn = (
        draw_loss_by_step(ranking.rows, collected.steps),
        draw_loss_by_time(ranking.rows, collected.steps),
        draw_throughput(ranking.rows),
        draw_latency(ranking.rows),
    )
    return {figure.ident: figure for figure in drawn if figure is not None}
