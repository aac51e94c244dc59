"""metrics.parquet: every number of a study in one long table that any data frame library reads.

The column `table` says what a row is, and which columns it fills; all others are null there:

- `meta`: one row, the schema, settings hash and provenance of this file;
- `trials`: one row a trial: choices (`choice.<name>`), verdict, rank, loss, metrics, speed, latency, cost;
- `steps`: one row a line of a trial's `metrics.jsonl`, with the phases of a step (`step_phase_s.<name>`);
- `stages`: one row a run of a workflow stage, from Snakemake's benchmark tables (`stage`, `wall_s`, …).
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from windtunnel.records.meter import StepPhase, average_step
from windtunnel.records.trial import Evaluation, StepRecord
from windtunnel.report.benchmarks import StageTime
from windtunnel.report.compare import Ranking
from windtunnel.report.rows import Row

SCHEMA = "windtunnel.metrics/1"
_LIMIT = 1 << 63
# Stated, so that a column has one type whether or not this study filled it.
TRIAL_COLUMNS: dict[str, type[pl.DataType]] = {
    "trial_id": pl.String,
    "name": pl.String,
    "label": pl.String,
    "configuration": pl.String,
    "verdict": pl.String,
    "evidence": pl.String,
    "rank": pl.Int64,
    "attempts": pl.Int64,
    "steps": pl.Int64,
    "final_train_loss": pl.Float64,
    "samples_per_s": pl.Float64,
    "step_s_median": pl.Float64,
    "step_s_p90": pl.Float64,
    "steps_timed": pl.Int64,
    "steps_discarded": pl.Int64,
    "tokens_per_s": pl.Float64,
    "model_flops": pl.Float64,
    "hardware_flops": pl.Float64,
    "mfu_measured": pl.Float64,
    "mfu_sheet": pl.Float64,
    "hfu_measured": pl.Float64,
    "hfu_sheet": pl.Float64,
    "params": pl.Int64,
    "peak_rss_mib": pl.Float64,
    "energy_j": pl.Float64,
    "resumed_from_step": pl.Int64,
    "device": pl.String,
    "rank_hosts": pl.String,
    "latency_p50_us": pl.Float64,
    "latency_p99_us": pl.Float64,
    "latency_p999_us": pl.Float64,
    "latency_samples": pl.Int64,
    "checkpoint_verified": pl.Boolean,
    "node_hours": pl.Float64,
    "node_hours_lost": pl.Float64,
    "money": pl.Float64,
    "currency": pl.String,
}
STEP_COLUMNS: dict[str, type[pl.DataType]] = {
    "trial_id": pl.String,
    "step": pl.Int64,
    "attempt": pl.Int64,
    "loss": pl.Float64,
    "learning_rate": pl.Float64,
    "samples_per_s": pl.Float64,
    "step_s": pl.Float64,
    "elapsed_s": pl.Float64,
}
STAGE_COLUMNS: dict[str, type[pl.DataType]] = {
    "stage": pl.String,
    "wall_s": pl.Float64,
    "cpu_s": pl.Float64,
    "max_rss_mib": pl.Float64,
    "mean_load_percent": pl.Float64,
    "read_mib": pl.Float64,
    "written_mib": pl.Float64,
}
_OUTCOME_COLUMNS = (
    "steps",
    "final_train_loss",
    "samples_per_s",
    "step_s_median",
    "step_s_p90",
    "steps_timed",
    "steps_discarded",
    "params",
    "peak_rss_mib",
    "resumed_from_step",
    "device",
)


def encode_metrics(
    ranking: Ranking,
    *,
    steps: Mapping[str, Sequence[StepRecord]],
    stages: Sequence[StageTime],
    meta: Mapping[str, str],
) -> bytes:
    """The file's bytes."""
    frames = [
        pl.DataFrame([{"table": "meta", "schema": SCHEMA, **meta}]),
        _frame("trials", [trial_record(row, ranking.rank_of(row)) for row in ranking.rows], TRIAL_COLUMNS),
        _frame("steps", [step_record(i, s) for i, found in steps.items() for s in found], STEP_COLUMNS),
        _frame("stages", [asdict(stage) for stage in stages], STAGE_COLUMNS),
    ]
    buffer = io.BytesIO()
    pl.concat(frames, how="diagonal").write_parquet(buffer)
    return buffer.getvalue()


def trial_record(row: Row, rank: int | None) -> dict[str, Any]:
    """One trial as a flat record; evaluations are `<split>.<metric>`, phases `phase_s.<name>`."""
    outcome, latency = row.outcome, row.latency
    record: dict[str, Any] = {
        "trial_id": row.trial_id,
        "name": row.name,
        "label": row.label,
        "configuration": row.configuration,
        "verdict": row.verdict,
        "evidence": row.evidence,
        "rank": rank,
        "attempts": row.attempts,
        "latency_p50_us": latency.p50_us if latency else None,
        "latency_p99_us": latency.p99_us if latency else None,
        "latency_p999_us": latency.p999_us if latency else None,
        "latency_samples": latency.samples if latency else None,
        "checkpoint_verified": row.check.verified if row.check else None,
        "node_hours": row.cost.node_hours,
        "node_hours_lost": row.lost.node_hours,
        "money": row.cost.money,
        "currency": row.cost.currency,
        "tokens_per_s": row.tokens_per_s,
        **asdict(row.utilization),
        **{f"choice.{name}": str(value) for name, value in row.choices.items()},
    }
    if outcome:
        record |= {name: getattr(outcome, name) for name in _OUTCOME_COLUMNS}
        record |= {"rank_hosts": ",".join(outcome.rank_hosts)}
        record |= {f"phase_s.{name}": float(seconds) for name, seconds in outcome.phases_s.items()}
        if outcome.work:
            record |= {name: getattr(outcome.work, name) for name in ("model_flops", "hardware_flops")}
        record |= {"energy_j": outcome.energy.joules if outcome.energy else None}
        for memory in sorted(outcome.rank_memory, key=lambda memory: memory.peak_bytes)[-1:]:
            record |= {f"memory.{name}": size for name, size in asdict(memory).items()}
        record |= _phases_record(average_step(outcome.rank_phases))
        for evaluation in outcome.evaluations:
            record |= _evaluation_record(evaluation)
    return record


def step_record(trial_id: str, step: StepRecord) -> dict[str, Any]:
    """A line of metrics.jsonl as a flat record; phases are `step_phase_s.<name>`."""
    record = {"trial_id": trial_id, **asdict(step)}
    phases_s = record.pop("phases_s")
    return record | _phases_record(phases_s if isinstance(phases_s, dict) else {})


def _phases_record(phases_s: Mapping[str, Any]) -> dict[str, Any]:
    return {f"step_phase_s.{name}": phases_s.get(name) for name in StepPhase if name in phases_s}


def _evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    split = evaluation.split
    metrics = {f"{split}.{name}": float(value) for name, value in evaluation.metrics.items() if name != "loss"}
    return {f"{split}.loss": evaluation.loss, f"{split}.samples": evaluation.samples, **metrics}


def _frame(
    table: str, records: Sequence[Mapping[str, Any]], columns: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    extra = sorted({name for record in records for name in record} - set(columns))
    full = [
        {_clean(name): _fit(record.get(name), columns.get(name)) for name in (*columns, *extra)} for record in records
    ]
    frame = pl.DataFrame(full, schema=None if full else dict(columns), infer_schema_length=None)
    typed = frame.with_columns(pl.col(name).cast(kind) for name, kind in columns.items())
    return typed.with_columns(pl.lit(table).alias("table"))


def _fit(value: Any, kind: type[pl.DataType] | None) -> Any:
    """The value, or None where its column could not hold it: files of trials may be older, or damaged."""
    if isinstance(value, str):
        return _clean(value) if kind in (pl.String, None) else None
    if isinstance(value, bool):
        return value if kind in (pl.Boolean, None) else None
    if not isinstance(value, int | float) or kind in (pl.String, pl.Boolean):
        return None
    if kind is pl.Int64 or (isinstance(value, int) and kind is None):
        return int(value) if abs(value) < _LIMIT else None  # NaN is not below either
    return _read_float(value)


def _read_float(value: float) -> float | None:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _clean(text: str) -> str:
    """Without halves of characters, which JSON can name and no file can hold."""
    return text.encode(errors="replace").decode()
