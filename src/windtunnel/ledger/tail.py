"""The end of a log, without reading the whole."""

from pathlib import Path

_TAIL_BYTES = 8192
_LINE_CHARS = 600


def read_last_line(path: Path) -> str:
    """The last line with text of a file; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return find_last_line(text)[:_LINE_CHARS]


def find_last_line(text: str) -> str:
    """The last line of `text` that has any; empty when none has."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
