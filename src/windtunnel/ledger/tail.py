"""The end of a log, without reading the whole."""

from pathlib import Path
from typing import Any

from pydantic_core import from_json

_TAIL_BYTES = 1 << 16
_LINE_CHARS = 600


def read_last_line(path: Path) -> str:
    """The last line with text of a file, cut after 600 characters; empty when there is none."""
    return find_last_line(_read_tail(path))[:_LINE_CHARS]


def read_last_record(path: Path) -> dict[str, Any]:
    """The fields of the newest whole JSON object of a file with one a line; none where there is no such line."""
    for line in reversed(_read_tail(path).splitlines()):
        try:
            record = from_json(line)
        except ValueError:  # a writer did not finish it, or the tail begins amid it
            continue
        if isinstance(record, dict):
            return record
    return {}


def find_last_line(text: str) -> str:
    """The last line of `text` that has any; empty when none has."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _read_tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
