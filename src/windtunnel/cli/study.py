"""The command line of what people ask of a study under way: status, cancel, retry, logs, explain."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_STUDY = "study, or a folder with its plan.json"


def add_study_parsers(subparsers: "Subparsers") -> None:
    """Add `status`, `cancel`, `retry`, `logs` and `explain`."""
    status = subparsers.add_parser("status", help="each trial's state, speed and cost; without a study, all studies")
    status.add_argument("study", nargs="?", help=_STUDY)
    status.add_argument("--watch", action="store_true", help="again and again, until the sweep is over")
    status.add_argument("--json", action="store_true", help="as JSON: one document a look")
    status.set_defaults(func=_status)
    cancel = subparsers.add_parser("cancel", help="end a study's jobs; the next sweep goes on with them")
    cancel.add_argument("study", help=_STUDY)
    cancel.add_argument("trials", nargs="*", metavar="TRIAL", help="ids or names (all that are not done)")
    cancel.set_defaults(func=_cancel)
    retry = subparsers.add_parser("retry", help="withdraw verdicts, so that the next sweep runs these trials again")
    retry.add_argument("study", help=_STUDY)
    retry.add_argument("trials", nargs="*", metavar="TRIAL", help="ids or names")
    retry.add_argument("--failed", action="store_true", help="all that ended without completing")
    retry.set_defaults(func=_retry)
    logs = subparsers.add_parser("logs", help="what a rank of a trial printed")
    _add_trial(logs)
    logs.add_argument("--attempt", type=int, metavar="N", help="attempt, counted from 1 (the newest)")
    logs.add_argument("--rank", type=int, default=0, metavar="R", help="rank (%(default)s)")
    logs.add_argument("--lines", type=int, metavar="N", help="only the last N lines")
    logs.add_argument("--follow", action="store_true", help="go on until the attempt ends")
    logs.set_defaults(func=_logs)
    explain = subparsers.add_parser("explain", help="why a trial ran, was pruned, failed, waits")
    kinds = explain.add_subparsers(dest="kind", required=True, metavar="KIND")
    trial = kinds.add_parser("trial", help="a trial's history and state, in sentences")
    _add_trial(trial)
    trial.set_defaults(func=_explain)
    for parser in (status, cancel, retry, logs, trial):
        parser.add_argument("--results", type=Path, help="folder of the studies' results (results)")


def _add_trial(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trial", metavar="TRIAL", help="id, the beginning of one, or a name")
    parser.add_argument("--study", help="study to look in (all)")


def _status(args: argparse.Namespace) -> None:
    from windtunnel.cli.status import run_status

    run_status(args.study, results=args.results, watch=args.watch, as_json=args.json)


def _cancel(args: argparse.Namespace) -> None:
    from windtunnel.cli.wishes import run_cancel

    run_cancel(args.study, args.trials, results=args.results)


def _retry(args: argparse.Namespace) -> None:
    from windtunnel.cli.wishes import run_retry

    run_retry(args.study, args.trials, failed=args.failed, results=args.results)


def _logs(args: argparse.Namespace) -> None:
    from windtunnel.cli.history import run_logs

    run_logs(
        args.trial,
        study=args.study,
        results=args.results,
        attempt=args.attempt,
        rank=args.rank,
        lines=args.lines,
        follow=args.follow,
    )


def _explain(args: argparse.Namespace) -> None:
    from windtunnel.cli.history import run_explain

    run_explain(args.trial, study=args.study, results=args.results)
