"""Subcommands that are no stages: run one trial, begin a project, install a profile."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_tool_parsers(subparsers: "Subparsers") -> None:
    """Add `init`, `train`, `profile` and `trial`."""
    init = subparsers.add_parser("init", help="begin a project of your own: a study, a model, a Snakefile")
    init.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder")
    init.set_defaults(func=_init)
    train = subparsers.add_parser("train", help="train from the command line: train -m model=tcn,transformer")
    add_train_options(train)
    profile = subparsers.add_parser("profile", help="install a Snakemake profile")
    actions = profile.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser("install", help="copy a profile, and a site file to fill in")
    install.add_argument("name", help="local, slurm or testbed")
    install.set_defaults(func=_install)
    trial = subparsers.add_parser("trial", help="run a planned trial's next attempt, as jobs do")
    trial.add_argument("folder", type=Path, metavar="DIR", help="the trial's folder, with its config.yaml")
    trial.set_defaults(func=_trial)


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """What `train` takes; it may stand in any order, as with Hydra."""
    parser.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    parser.add_argument("--cfg", choices=("job", "hydra", "all"), help="print the composed configuration and end")
    parser.add_argument("overrides", nargs="*", help="Hydra's, such as study=quickstart or training.steps=50")


def _init(args: argparse.Namespace) -> None:
    from windtunnel.cli.init import run_init

    run_init(args.folder)


def _install(args: argparse.Namespace) -> None:
    from windtunnel.cli.profile import run_install

    run_install(args.name)


def _trial(args: argparse.Namespace) -> int:
    from windtunnel.attempt.run import run_attempt
    from windtunnel.records.trial import Verdict

    end = run_attempt(args.folder)
    print(f"attempt {end.attempt}: {end.verdict}: {end.evidence}", flush=True)
    return 0 if end.verdict is Verdict.COMPLETED else 1
