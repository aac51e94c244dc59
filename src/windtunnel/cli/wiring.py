"""The command line of the stages: files in, files out. The workflow calls these; people may too."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.cli.topology import add_topology_parsers

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_stage_parsers(subparsers: "Subparsers") -> None:
    """Add a subcommand for each stage, in the data's order."""
    ingest = _add(subparsers, "ingest", _stage("ingest"), "raw files to shards")
    for name in ("settings", "out"):
        ingest.add_argument(f"--{name}", type=Path)
    ingest.add_argument("--ranks", type=int, default=1, help="MPI ranks, where an mpiexec fits (%(default)s)")
    _add_inspect(ingest)
    _add(subparsers, "featurize", _stage("featurize"), "shards to feature shards", "settings", "shards", "out")
    topology = _add(subparsers, "topology", _stage("topology"), "nodes, switches, collectives; for people: facts …")
    for name in ("settings", "out", "collectives"):
        topology.add_argument(f"--{name}", type=Path)
    add_topology_parsers(topology)
    _add(subparsers, "calibrate", _stage("calibrate"), "what the device attains", "settings", "out")
    trace = _add(subparsers, "trace", _stage("trace"), "models' operations and shapes", "settings", "out")
    _add_features(trace)
    plan = _add(subparsers, "plan", _stage("plan"), "the study's trials; for people: plan STUDY --dry-run")
    plan.add_argument("study", nargs="?", help="study to plan, from conf/")
    plan.add_argument("overrides", nargs="*", help="settings to change, such as training.batch_size=128")
    for name in ("settings", "topology", "collectives", "device", "models", "out"):
        plan.add_argument(f"--{name}", type=Path)
    _add_features(plan)
    plan.add_argument("--dry-run", action="store_true", help="print what would be submitted, write nothing")
    sweep = _add(
        subparsers,
        "sweep",
        _stage("sweep"),
        "run the trials; for people: sweep STUDY --help",
        "settings",
        "plan",
        "out",
    )
    _add_features(sweep)
    sweep.add_argument("--topology", type=Path)
    sweep.add_argument("--report", type=Path, help="settings file of report, for the report of an unfinished sweep")
    sweep.add_argument("--store", type=Path, help="folder of `trials/` (the one that holds the features)")
    verify = _add(subparsers, "verify-checkpoints", _stage("verify_checkpoints"), "check every byte", "sweep", "out")
    verify.add_argument("--study", required=True)
    _add(subparsers, "latency", _stage("latency"), "inference latency", "settings", "sweep", "checkpoints", "out")
    report = _add(
        subparsers, "report", _stage("report"), "the page and its numbers", "settings", "plan", "sweep", "out"
    )
    report.add_argument("--metrics", type=Path, required=True)
    for name in ("checkpoints", "latency", "models", "topology", "collectives", "device"):
        report.add_argument(f"--{name}", type=Path)
    report.add_argument("--benchmarks", type=Path, nargs="*", default=[], help="Snakemake's benchmark tables")


def _add_inspect(ingest: argparse.ArgumentParser) -> None:
    actions = ingest.add_subparsers(dest="action", metavar="ACTION")
    inspect = actions.add_parser("inspect", help="say what a raw file is, what is odd, and what would be quarantined")
    inspect.add_argument("file", metavar="FILE", help="path, or package:<name>/<path>")
    inspect.add_argument("--source", default="", help="source to read it with (the first that takes it)")
    inspect.add_argument(
        "--text", action="append", default=[], metavar="KEY=VALUE", help="a setting below data.text, such as zone=UTC"
    )
    inspect.add_argument("--json", dest="as_json", action="store_true", help="as JSON")
    inspect.set_defaults(func=_stage("inspect"))


def _add_features(parser: argparse.ArgumentParser) -> None:
    # A study of programs that read no data has none: the workflow's option stands alone then.
    parser.add_argument(
        "--features", type=Path, nargs="?", help="manifest of the feature shards, for what reads them"
    )


def _stage(name: str) -> Callable[[argparse.Namespace], object]:
    # Imported when it runs: all settings' models would cost `windtunnel status` half its time.
    def run(args: argparse.Namespace) -> object:
        from windtunnel.cli import stages

        return getattr(stages, name)(args)

    return run


def _add(
    subparsers: "Subparsers", name: str, func: Callable[[argparse.Namespace], object], text: str, *files: str
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(name, help=f"stage: {text}")
    for file in files:
        parser.add_argument(f"--{file}", type=Path, required=True)
    parser.set_defaults(func=func)
    return parser
