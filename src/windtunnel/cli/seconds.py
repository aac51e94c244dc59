"""Seconds on the command line: a time to wait that ends."""

import argparse

# As settings.base has it, which would bring pydantic into every command's start.
_YEAR_S = 365 * 86400.0


def read_seconds(text: str) -> float:
    """An argparse type: seconds from 0 to a year. Argparse refuses all else, `nan` too, with exit code 2."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0.0 <= seconds <= _YEAR_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to wait: give seconds from 0 to {_YEAR_S:.0f}")
    return seconds
