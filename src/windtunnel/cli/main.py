"""The `windtunnel` command: one subcommand a stage, and what people type.

A user's mistake is one message and exit code 2; any other failure of ours is one message and exit code 1.
Each subcommand imports what it needs when it runs, so that `--help` is quick and login nodes load no torch.
"""

import argparse
import sys
from collections.abc import Sequence

from windtunnel import __version__
from windtunnel.cli.testbed import add_testbed_parser
from windtunnel.cli.tools import add_tool_parsers
from windtunnel.cli.wiring import add_stage_parsers
from windtunnel.errors import WindtunnelError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["train"] and not {"-h", "--help"} & set(words):
            from windtunnel.cli.train import run_train

            return run_train(words[1:])
        args = build_parser().parse_args(words)
        return int(args.func(args) or 0)
    except WindtunnelError as error:
        print(f"windtunnel: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except OSError as error:  # a full disk, or results that this user may not write
        where = f": {error.filename}" if error.filename is not None else ""
        print(f"windtunnel: {error.strerror or error}{where}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="windtunnel", description="From raw market data to a decision about how to train."
    )
    parser.add_argument("--version", action="version", version=f"windtunnel {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_tool_parsers(subparsers)
    add_testbed_parser(subparsers)
    add_stage_parsers(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
