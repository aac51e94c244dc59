"""The command line of the stages: files in, files out. The workflow calls these; people may too."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.cli import stages

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_stage_parsers(subparsers: "Subparsers") -> None:
    """Add a subcommand for each stage, in the data's order."""
    ingest = _add(subparsers, "ingest", stages.ingest, "raw files to shards", "settings", "out")
    ingest.add_argument("--ranks", type=int, default=1, help="MPI ranks, where an mpiexec fits (%(default)s)")
    _add(subparsers, "featurize", stages.featurize, "shards to feature shards", "settings", "shards", "out")
    _add(subparsers, "topology", stages.topology, "nodes, switches, collectives", "settings", "out", "collectives")
    _add(subparsers, "calibrate", stages.calibrate, "what the device attains", "settings", "out")
    _add(subparsers, "trace", stages.trace, "models' operations and shapes", "settings", "features", "out")
    plan = _add(subparsers, "plan", stages.plan, "the study's trials; for people: plan STUDY --dry-run")
    plan.add_argument("study", nargs="?", help="study to plan, from conf/")
    plan.add_argument("overrides", nargs="*", help="settings to change, such as training.batch_size=128")
    for name in ("settings", "features", "topology", "collectives", "device", "models", "out"):
        plan.add_argument(f"--{name}", type=Path)
    plan.add_argument("--dry-run", action="store_true", help="print what would be submitted, write nothing")
    sweep = _add(subparsers, "sweep", stages.sweep, "run the trials", "settings", "plan", "features", "out")
    sweep.add_argument("--topology", type=Path)
    sweep.add_argument("--report", type=Path, help="settings file of report, for the report of an unfinished sweep")
    sweep.add_argument("--store", type=Path, help="folder of `trials/` (the one that holds the features)")
    verify = _add(subparsers, "verify-checkpoints", stages.verify_checkpoints, "check every byte", "sweep", "out")
    verify.add_argument("--study", required=True)
    _add(subparsers, "latency", stages.latency, "inference latency", "settings", "sweep", "checkpoints", "out")
    report = _add(subparsers, "report", stages.report, "the page and its numbers", "settings", "plan", "sweep", "out")
    report.add_argument("--metrics", type=Path, required=True)
    for name in ("checkpoints", "latency", "models", "topology", "collectives", "device"):
        report.add_argument(f"--{name}", type=Path)
    report.add_argument("--benchmarks", type=Path, nargs="*", default=[], help="Snakemake's benchmark tables")


def _add(
    subparsers: "Subparsers", name: str, func: Callable[[argparse.Namespace], object], text: str, *files: str
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(name, help=f"stage: {text}")
    for file in files:
        parser.add_argument(f"--{file}", type=Path, required=True)
    parser.set_defaults(func=func)
    return parser
