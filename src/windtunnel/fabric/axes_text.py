"""The axes of a layout as people type them. Pure."""

from typing import get_args

from windtunnel.errors import LayoutError
from windtunnel.fabric.traffic import Axis, Pattern
from windtunnel.units import parse_bytes

_FORM = "NAME=RANKS:PATTERN:BYTES[:EXPOSED], as dp=4:ring:32M:0.5"


def parse_axes(text: str) -> tuple[Axis, ...]:
    """`tp=2:ring:100M,dp=4:ring:32M:0.5`; raises LayoutError for another form."""
    return tuple(_parse_axis(word.strip()) for word in text.split(","))


def _parse_axis(word: str) -> Axis:
    name, _, rest = word.partition("=")
    fields = rest.split(":")
    patterns: dict[str, Pattern] = {pattern: pattern for pattern in get_args(Pattern)}
    if not name or len(fields) not in (3, 4) or not fields[0].isdecimal() or fields[1] not in patterns:
        raise LayoutError(f"axis {word!r} is not of the form {_FORM}; patterns: {', '.join(patterns)}")
    try:
        exposed = float(fields[3]) if len(fields) == 4 else 1.0
    except ValueError:
        raise LayoutError(f"axis {word!r} exposes {fields[3]!r}, expected a share from 0 to 1") from None
    return Axis(name, int(fields[0]), patterns[fields[1]], parse_bytes(fields[2]), exposed=exposed)
