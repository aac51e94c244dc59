"""A trial's logs: which file, and its growth."""

import time
from collections.abc import Iterator
from pathlib import Path

from windtunnel.errors import InputFileError
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers
from windtunnel.ledger.lease import read_live_holder

_POLL_S = 0.5
_BLOCK_BYTES = 1 << 16


def find_log(folder: TrialFolder, *, attempt: int | None, rank: int) -> Path:
    """The log of a rank, in the newest attempt unless one is named; raises InputFileError with what there is."""
    numbers = read_attempt_numbers(folder)
    if not numbers:
        raise InputFileError(
            f"trial {folder.path.name} has no attempt yet: windtunnel explain trial {folder.path.name}"
        )
    number = numbers[-1] if attempt is None else attempt
    if number not in numbers:
        raise InputFileError(f"trial {folder.path.name} has no attempt {number}, only {', '.join(map(str, numbers))}")
    path = folder.rank_log(number, rank)
    if not path.is_file():
        there = sorted(entry.name for entry in folder.attempt(number).iterdir() if entry.is_file())
        raise InputFileError(f"{path} does not exist; attempt {number} has: {', '.join(there) or 'no files yet'}")
    return path


def read_log(path: Path, *, lines: int | None = None) -> Iterator[bytes]:
    """The whole log in pieces, or its last `lines`."""
    with path.open("rb") as file:
        file.seek(0 if lines is None else _find_tail(path, lines))
        while block := file.read(_BLOCK_BYTES):
            yield block


def follow_log(path: Path, folder: TrialFolder, *, lines: int | None = None) -> Iterator[bytes]:
    """What there is, then what is added, until the attempt has ended."""
    end = path.parent / "END.json"
    position = 0 if lines is None else _find_tail(path, lines)
    while True:
        # Looked at before the read, so that the attempt's last words are read too.
        over = end.exists() or read_live_holder(folder.lease) is None
        # Opened each time: a log of bounded size is written anew once it is full.
        with path.open("rb") as file:
            position = min(position, file.seek(0, 2))
            file.seek(position)
            while block := file.read(_BLOCK_BYTES):
                position += len(block)
                yield block
        if over:
            return
        time.sleep(_POLL_S)


def _find_tail(path: Path, lines: int) -> int:
    """Where the last `lines` lines begin, looked for from the end."""
    with path.open("rb") as file:
        position = file.seek(0, 2)
        wanted, first = lines, True
        while position > 0:
            size = min(_BLOCK_BYTES, position)
            position = file.seek(position - size)
            block = file.read(size)
            end = len(block) - 1 if first and block.endswith(b"\n") else len(block)
            first = False
            while wanted and (found := block.rfind(b"\n", 0, end)) >= 0:
                end, wanted = found, wanted - 1
            if not wanted:
                return position + end + 1
    return 0
