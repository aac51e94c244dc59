"""The `windtunnel` command: one subcommand a stage, and what people type.

A user's mistake is one message and exit code 2; any other failure of ours is one message and exit code 1.
Each subcommand imports what it needs when it runs, so that `--help` is quick and login nodes load no torch.
"""

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from windtunnel import __version__
from windtunnel.cli.perfmodel import add_perfmodel_parser
from windtunnel.cli.study import add_study_parsers
from windtunnel.cli.testbed import add_testbed_parser
from windtunnel.cli.tools import add_tool_parsers
from windtunnel.cli.wiring import add_stage_parsers
from windtunnel.errors import WindtunnelError
from windtunnel.modes import umask_of_store
from windtunnel.storage import find_storage_fault

_SIGPIPE_EXIT = 128 + signal.SIGPIPE
"""As of any program whose reader went away."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _tell_errors(words)
        finally:  # here, since at the interpreter's end nobody could catch what it raises
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError as error:
        if _silence_unread():  # `| head` has seen enough
            return _SIGPIPE_EXIT
        print(f"windtunnel: {error.strerror}", file=sys.stderr, flush=True)
        return 1


def _tell_errors(words: Sequence[str]) -> int:
    try:
        return _dispatch(words)
    except BrokenPipeError:
        raise
    except WindtunnelError as error:
        print(f"windtunnel: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except OSError as error:  # a full disk, or results that this user may not write
        where = f": {error.filename}" if error.filename is not None else ""
        room = ": make room, then the same command goes on" if find_storage_fault(error) is not None else ""
        print(f"windtunnel: {error.strerror or error}{where}{room}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130


def _silence_unread() -> bool:
    """Send to nowhere what standard streams would still print to a reader who went away; whether one did."""
    unread = [
        stream for stream in (sys.stdout, sys.stderr) if stream is not None and not _has_reader(stream.fileno())
    ]
    for stream in unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return bool(unread)


def _has_reader(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _dispatch(words: Sequence[str]) -> int:
    if words[:1] == ["train"] and not {"-h", "--help"} & set(words):
        from windtunnel.cli.train import run_train

        with umask_of_store([]):  # until the study's own store is known
            return run_train(words[1:])
    if words[:1] == ["sweep"] and not any(word.partition("=")[0] == "--settings" for word in words):
        from windtunnel.cli.sweep import run_sweep_command

        with umask_of_store([]):
            return run_sweep_command(words[1:])
    args = _parse(words)
    if args.command == "testbed":  # its daemons, and the commands run in it, are no study's
        return int(args.func(args) or 0)
    with umask_of_store(list_paths(args)):
        return int(args.func(args) or 0)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    args, rest = parser.parse_known_args(words)
    # argparse takes no positional argument behind an option: `plan quickstart --dry-run training.steps=5`.
    if args.command == "plan" and not any(word.startswith("-") for word in rest):
        args.overrides += rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def list_paths(args: argparse.Namespace) -> list[Path]:
    """Every path among a subcommand's arguments."""
    values = [item for value in vars(args).values() for item in (value if isinstance(value, list) else [value])]
    return [value for value in values if isinstance(value, Path)]


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="windtunnel", description="From raw market data to a decision about how to train."
    )
    parser.add_argument("--version", action="version", version=f"windtunnel {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_tool_parsers(subparsers)
    add_study_parsers(subparsers)
    add_testbed_parser(subparsers)
    add_perfmodel_parser(subparsers)
    add_stage_parsers(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
