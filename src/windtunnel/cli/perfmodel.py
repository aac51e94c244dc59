"""`windtunnel perfmodel check`: how right the model of step times is on tables of measured runs."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.cli.tools import Subparsers
    from windtunnel.perfmodel.check import Check

_HEADER = ("source", "runs", "error", "baseline", "rank", "best kept in 1/4", "in 1/2")


def add_perfmodel_parser(subparsers: "Subparsers") -> None:
    """Add `perfmodel`."""
    perfmodel = subparsers.add_parser("perfmodel", help="the model of step times: hold it against measured runs")
    actions = perfmodel.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="fit to half of a table's jobs, and judge the others")
    check.add_argument("tables", type=Path, nargs="+", metavar="CSV", help="measured runs, one a row")
    check.add_argument("--notes", default="", help="only rows whose notes contain this")
    check.add_argument("--json", dest="as_json", action="store_true", help="as JSON, with the fitted constants")
    check.set_defaults(func=_check)


def _check(args: argparse.Namespace) -> int:
    from windtunnel.perfmodel.check import check_runs
    from windtunnel.perfmodel.tables import read_runs

    runs = [run for table in args.tables for run in read_runs(table) if args.notes in run.notes]
    checks = check_runs(runs)
    if args.as_json:
        print(json.dumps([describe_check(check) for check in checks], indent=2))
    else:
        print("\n".join(render_checks(checks)))
    return 0


def render_checks(checks: Sequence["Check"]) -> list[str]:
    """A table, a line a source."""
    lines = [_HEADER, *(_render_check(check) for check in checks)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def describe_check(check: "Check") -> dict[str, object]:
    """A check as plain values."""
    return {
        "source": check.source,
        "runs": len(check.judged),
        "mape_percent": check.mape,
        "baseline_mape_percent": check.baseline_mape,
        "kendall": check.kendall,
        "best_kept_at_quarter": check.kept_best(0.25),
        "best_kept_at_half": check.kept_best(0.5),
        "fits": [{"fitted": fit.fitted, "runs": fit.runs, "constants": asdict(fit.constants)} for fit in check.fits],
    }


def _render_check(check: "Check") -> tuple[str, ...]:
    shares = (check.kendall, check.kept_best(0.25), check.kept_best(0.5))
    told = ("-" if share is None else f"{share:.2f}" for share in shares)
    errors = (f"{check.mape:.1f} %", f"{check.baseline_mape:.1f} %")
    return (check.source, str(len(check.judged)), *errors, *told)
