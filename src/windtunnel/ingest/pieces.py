"""A run of pieces of one text as blocks of whole lines, each with its piece and its first line's number there."""

from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.ingest.files import RawFile, count_lines, cut_lines, read_pieces
from windtunnel.ingest.sources.base import Run
from windtunnel.ingest.unpack import Member, open_member


@dataclass(frozen=True)
class TextBlock:
    """Whole lines of one piece."""

    text: bytes
    piece: int
    first_line: int
    """In the piece, from 1."""
    lines: int

    @property
    def is_first(self) -> bool:
        """Whether the text begins here."""
        return self.piece == 0 and self.first_line == 1


def read_run(raw: RawFile, member: Member, run: Run, *, head_lines: int = 0) -> Iterator[TextBlock]:
    """The blocks of a run; `run.max_rows` counts lines behind the first `head_lines`."""
    left = None if run.max_rows is None else run.max_rows + head_lines
    piece, line = -1, 1
    with open_member(raw, member) as stream:
        for number, whole in read_pieces(stream, run.piece_bytes, first=run.first, end=run.end):
            text = whole if left is None else cut_lines(whole, left)
            lines = count_lines(text)
            piece, line = number, (line if number == piece else 1)
            yield TextBlock(text, number, line, lines)
            line += lines
            if left is not None:
                left -= lines
                if left <= 0:
                    return
