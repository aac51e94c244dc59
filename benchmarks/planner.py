"""How right the performance model is: on published runs of families that its constants had not seen."""

import statistics
from collections.abc import Sequence

from benchmarks.harness import ROOT, Part, PartResult, Row
from windtunnel.perfmodel.check import Check, Judged, check_runs
from windtunnel.perfmodel.tables import Run, read_runs

TABLES = ROOT.parent / "shared" / "perf_tables"
FILES = {
    "llm_foundry": "llm_foundry",
    "dlperf": "dlperf_v100_megatron",
    "vtrain": "vtrain_ground_truth",
    "bigscience": "bigscience",
    "korthikanti": "korthikanti2022_calculon",
    "megatron_bridge": "megatron_bridge",
}
_RANKED = ("vtrain", "bigscience")
_QUARTER, _HALF = 0.25, 0.5


def run_published(quick: bool) -> PartResult:
    """All tables, also when quick: they take half a minute."""
    del quick
    checks = {name: check_runs(read_table(name)) for name in FILES}
    figures, cases, rows = {}, {}, []
    for name, found in checks.items():
        judged = [each for check in found for each in check.judged]
        figures[f"mape_{name}"], cases[f"mape_{name}"] = _mape(judged), len(judged)
        rows += _make_rows(name, found)
    _add_ranks(figures, cases, checks)
    return PartResult(figures, cases, tuple(rows))


def read_table(name: str) -> list[Run]:
    """Its runs; of Megatron-Bridge the dense pre-training ones, since others do other work for a token."""
    runs = read_runs(TABLES / f"{FILES[name]}.csv")
    return [run for run in runs if "Pre-Training" in run.notes] if name == "megatron_bridge" else runs


def _add_ranks(figures: dict[str, float], cases: dict[str, int], checks: dict[str, tuple[Check, ...]]) -> None:
    for name in _RANKED:
        ranked = [check for check in checks[name] if check.kendall is not None]
        figures[f"kendall_{name}"] = statistics.median(check.kendall or 0.0 for check in ranked)
        cases[f"kendall_{name}"] = sum(len(check.families) for check in ranked)
    (vtrain,) = checks["vtrain"]
    for figure, share in (("best_kept_at_quarter", _QUARTER), ("best_kept_at_half", _HALF)):
        figures[figure], cases[figure] = vtrain.kept_best(share) or 0.0, len(vtrain.families)


def _mape(judged: Sequence[Judged]) -> float:
    return 100 * statistics.fmean(abs(each.error) for each in judged)


def _make_rows(name: str, checks: Sequence[Check]) -> list[Row]:
    rows = []
    for check in checks:
        errors = [100 * abs(each.error) for each in check.judged]
        what = f"{name}: {check.source.partition(' (')[0]}"
        rows.append(Row(f"{what}, error", check.mape, min(errors), max(errors), "%", len(errors)))
        base = check.baseline_mape
        rows.append(Row(f"{what}, error of one share of the peak", base, base, base, "%", len(errors)))
    return rows


PARTS = (
    Part(
        name="published",
        figures=(
            *(f"mape_{name}" for name in FILES),
            *(f"kendall_{name}" for name in _RANKED),
            "best_kept_at_quarter",
            "best_kept_at_half",
        ),
        measures=("perfmodel", "benchmarks/planner.py"),
        run=run_published,
    ),
)
