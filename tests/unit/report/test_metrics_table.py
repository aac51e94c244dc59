import io
from dataclasses import replace

import polars as pl

from fabricated_study import Fake, make_ranking
from windtunnel.records.trial import StepRecord
from windtunnel.report.metrics import encode_metrics

STEP = StepRecord(1, 1, 0.5, 0.1, 10.0, 0.1, 2.0)


def read_steps(*steps: StepRecord) -> list[dict[str, object]]:
    data = encode_metrics(make_ranking(Fake("a", loss=0.5)), steps={"a": steps}, stages=(), meta={})
    return pl.read_parquet(io.BytesIO(data)).filter(pl.col("table") == "steps").to_dicts()


def test_a_number_that_its_column_does_not_hold_is_null_and_the_others_stand() -> None:
    odd = replace(STEP, step=int("9" * 400), loss=int("9" * 400), attempt=2**63)
    first, second = read_steps(odd, STEP)
    assert (first["step"], first["loss"], first["attempt"], first["elapsed_s"]) == (None, None, None, 2.0)
    assert (second["step"], second["loss"]) == (1, 0.5)


def test_a_value_of_another_type_is_null() -> None:
    odd = StepRecord(**{**vars(STEP), "step": "one", "loss": [1], "step_s": True})
    first, _ = read_steps(odd, STEP)
    assert (first["step"], first["loss"], first["step_s"]) == (None, None, None)


def test_names_and_texts_that_no_file_holds_are_written_without_what_is_wrong() -> None:
    ranking = make_ranking(Fake("a", loss=0.5))
    row = ranking.rows[0]
    assert row.outcome is not None
    evaluation = replace(row.outcome.evaluations[0], metrics={"\ud800x": 1.0}, samples=2**70)
    outcome = replace(row.outcome, device="\ud800", evaluations=(evaluation,), params=2**70)
    data = encode_metrics(replace(ranking, rows=(replace(row, outcome=outcome),)), steps={}, stages=(), meta={})
    frame = pl.read_parquet(io.BytesIO(data)).filter(pl.col("table") == "trials")
    assert frame["device"].to_list() == ["?"]
    assert frame["validation.?x"].to_list() == [1.0]
