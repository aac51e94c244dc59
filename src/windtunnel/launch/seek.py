"""From what people type to the trial that they mean: an id, the beginning of one, or a name. Pure."""

from collections.abc import Sequence

from windtunnel.errors import StudyError
from windtunnel.launch.roster import Row

_SHOWN = 8


def find_row(rows: Sequence[Row], word: str, *, where: str) -> Row:
    """The one trial that `word` means; raises StudyError, with the candidates, for none or several.

    A whole id or a whole name comes before the beginning of an id, and that before a part of a name.
    """
    wanted = " ".join(word.split())
    for found in (
        [row for row in rows if wanted in (row.id, row.name)],
        [row for row in rows if wanted and row.id.startswith(wanted.lower())],
        [row for row in rows if wanted and wanted in row.name],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise StudyError(f"trial {word!r} of {where} may be any of {len(found)}: {_list(found)}; give an id")
    known = f"it has {len(rows)}: {_list(rows)}" if rows else "it has none"
    raise StudyError(f"trial {word!r} is not in {where}; {known}")


def find_rows(rows: Sequence[Row], words: Sequence[str], *, where: str) -> tuple[Row, ...]:
    """The trials of all words, each once; one StudyError for all mistakes."""
    found: dict[str, Row] = {}
    mistakes = []
    for word in words:
        try:
            row = find_row(rows, word, where=where)
            found[row.id] = row
        except StudyError as error:
            mistakes.append(str(error))
    if mistakes:
        raise StudyError("\n  ".join(mistakes))
    return tuple(found.values())


def _list(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{row.id} ({row.name})" for row in rows[:_SHOWN])
    return f"{shown} and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else shown
