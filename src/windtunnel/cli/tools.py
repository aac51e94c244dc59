"""Subcommands that are no stages: run one trial, begin a project, install a profile."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.cli.seconds import read_seconds

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_tool_parsers(subparsers: "Subparsers") -> None:
    """Add `init`, `train`, `profile`, `fsck`, `doctor` and `trial`."""
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
    fsck = subparsers.add_parser("fsck", help="check what is on disk, byte by byte")
    add_fsck_options(fsck)
    doctor = subparsers.add_parser("doctor", help="look at this machine and its cluster, and say what to set")
    add_doctor_options(doctor)
    doctor.set_defaults(func=_doctor)
    trial = subparsers.add_parser("trial", help="run the next attempt of planned trials in turn, as jobs do")
    trial.add_argument("folders", type=Path, metavar="DIR", nargs="+", help="a trial's folder, with its config.yaml")
    trial.add_argument("--succeeds", action="store_true", help="behind an earlier job of the trial: run what it left")
    trial.set_defaults(func=_trial)


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """What `train` takes; it may stand in any order, as with Hydra."""
    parser.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    parser.add_argument("--cfg", choices=("job", "hydra", "all"), help="print the composed configuration and end")
    parser.add_argument("overrides", nargs="*", help="Hydra's, such as study=quickstart or training.steps=50")


def add_fsck_options(parser: argparse.ArgumentParser) -> None:
    """What `fsck` takes."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    add_fsck_shards(kinds)
    checkpoints = kinds.add_parser("checkpoints", help="checkpoints of a trial: list, verify, explain")
    actions = checkpoints.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action, text in (
        ("list", "what there is, unread"),
        ("verify", "read every byte, and say which one a resume would take"),
        ("explain", "what one holds, and which tensors its damage touches"),
    ):
        parser = actions.add_parser(action, help=text)
        parser.add_argument("where", metavar="TRIAL", help="a trial's id or name, its folder, or a checkpoint's")
        parser.add_argument("--study", help="study to look for the trial in (all)")
        parser.add_argument("--results", type=Path, help="folder of the studies' results (results)")
        parser.add_argument("--json", dest="as_json", action="store_true", help="as JSON")
        parser.set_defaults(func=_fsck_checkpoints)


def add_fsck_shards(kinds: "Subparsers") -> None:
    """`fsck shards`."""
    shards = kinds.add_parser("shards", help="a dataset's shards, or all of a store: verify, and repair from source")
    shards.add_argument("where", type=Path, metavar="WHERE", help="a dataset's folder, its MANIFEST.json, or a store")
    shards.add_argument("--repair", action="store_true", help="make what is bad again from the raw files")
    shards.add_argument("--settings", type=Path, help="data settings, where the manifest is lost")
    shards.add_argument("--json", dest="as_json", action="store_true", help="as JSON")
    shards.set_defaults(func=_fsck_shards)


def add_doctor_options(parser: argparse.ArgumentParser) -> None:
    """What `doctor` takes."""
    parser.add_argument("--partition", default="", help="partition to try; the site file's, or Slurm's default")
    parser.add_argument("--store", type=Path, default=Path(), help="folder that trials will share (here)")
    parser.add_argument(
        "--wait", type=read_seconds, default=300.0, metavar="S", help="wait for its job (%(default)s s)"
    )
    parser.add_argument("--no-job", dest="job", action="store_false", help="submit nothing")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the findings as JSON")


def _doctor(args: argparse.Namespace) -> int:
    from windtunnel.cli.doctor.run import run_doctor

    return run_doctor(
        partition=args.partition, store=args.store, wait_s=args.wait, job=args.job, as_json=args.as_json
    )


def _fsck_checkpoints(args: argparse.Namespace) -> int:
    from windtunnel.cli.fsck import run_fsck_checkpoints

    return run_fsck_checkpoints(args.action, args.where, study=args.study, results=args.results, as_json=args.as_json)


def _fsck_shards(args: argparse.Namespace) -> int:
    from windtunnel.cli.fsck_shards import run_fsck_shards

    return run_fsck_shards(args.where, repair=args.repair, settings=args.settings, as_json=args.as_json)


def _init(args: argparse.Namespace) -> None:
    from windtunnel.cli.init import run_init

    run_init(args.folder)


def _install(args: argparse.Namespace) -> None:
    from windtunnel.cli.profile import run_install

    run_install(args.name)


def _trial(args: argparse.Namespace) -> int:
    from windtunnel.attempt.pack import run_pack

    return run_pack(args.folders, succeeds=args.succeeds)
