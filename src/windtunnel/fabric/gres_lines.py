"""A file of Gres strings, one a line, perhaps with a tab and a note behind each. Pure."""

import re

from windtunnel.fabric.topology import Topology
from windtunnel.gres import parse_gres

# A bare word may be a resource, but is a host as well as not: only usual names stand alone.
_LINE = re.compile(r"(?:gres[/:])?(?:[a-z_]\w*[:=(,]\S*|gpu|mps|shard|nic|mic)|\(null\)|N/A")


def is_gres_line(line: str) -> bool:
    """Whether a line could be such a string."""
    return _LINE.fullmatch(line.split("\t")[0].strip()) is not None


def parse_gres_lines(text: str) -> Topology:
    """What each line means."""
    strings = [line.split("\t")[0].strip() for line in text.splitlines() if line.strip()]
    return Topology("gres", lines=tuple((string, parse_gres(string)) for string in strings), records=len(strings))
