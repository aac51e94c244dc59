"""Raw files as settings name them: where they lie, that they can be read, and their bytes up to a number of lines."""

import importlib.util
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

import numpy as np

from windtunnel.artifacts import hash_file
from windtunnel.errors import InputFileError

T = TypeVar("T")
PACKAGE_PREFIX = "package:"
_BLOCK_BYTES = 4 << 20
_MAX_LINE_BYTES = 16 << 20


class ByteStream(Protocol):
    """Anything that gives bytes: a plain, gzip or zip member file."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes, all for -1, none at the end."""
        ...


@dataclass(frozen=True)
class RawFile:
    """One raw file: `spec` as the settings name it, `path` where it lies here."""

    spec: str
    path: Path
    bytes: int
    mtime_ns: int = 0


def find_raw_file(spec: str) -> RawFile:
    """The file that `spec` names; raises InputFileError when it is missing, no file, unreadable or empty."""
    path = _find_in_package(spec) if spec.startswith(PACKAGE_PREFIX) else Path(spec)
    if not spec.isprintable():  # manifests and logs could not name it
        raise InputFileError(f"data file {spec!a} has bytes in its name that are no printable text: rename it")
    try:
        if not path.exists():
            place = "" if path.is_absolute() else f" in {Path.cwd()}"
            raise InputFileError(f"data file {spec} does not exist{place}: correct data.files")
        if not path.is_file():
            raise InputFileError(f"data file {spec} is no file, expected one raw file: list its files in data.files")
        with path.open("rb") as stream:
            stream.read(1)
        found = path.stat()
    except OSError as error:
        raise InputFileError(
            f"data file {spec} cannot be read ({error.strerror}): give this user access to {path}"
        ) from error
    if found.st_size == 0:
        raise InputFileError(f"data file {spec} is empty (0 bytes): fetch it again or take it out of data.files")
    return RawFile(spec, path, found.st_size, found.st_mtime_ns)


def hash_raw_file(raw: RawFile) -> str:
    """SHA-256 in hex of a raw file's bytes; raises InputFileError when it cannot be read."""
    try:
        return hash_file(raw.path)
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error


def check_unchanged(raw: RawFile) -> None:
    """Raise InputFileError when the file is no longer the one that was found: somebody still writes it."""
    try:
        found = raw.path.stat()
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} went away while it was read ({error.strerror})") from error
    if (found.st_size, found.st_mtime_ns) != (raw.bytes, raw.mtime_ns):
        raise InputFileError(
            f"data file {raw.spec} changed while it was read ({raw.bytes:,} bytes, now {found.st_size:,}): run again "
            "once it is complete"
        )


def read_blocks(stream: ByteStream, max_lines: int | None, *, block_bytes: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """The stream's first `max_lines` lines, all when None, in blocks of whole lines; stops reading soon after."""
    rest = b""
    while (max_lines is None or max_lines > 0) and (data := stream.read(block_bytes)):
        end = data.rfind(b"\n") + 1
        block, rest = (rest + data[:end], data[end:]) if end else (b"", rest + data)
        if max_lines is not None:
            block = cut_lines(block, max_lines)
            max_lines -= block.count(b"\n")
        if block:
            yield block
    if rest and max_lines != 0:
        yield rest


def read_pieces(
    stream: ByteStream, piece_bytes: int, *, first: int = 0, end: int | None = None, block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines from piece `first` to `end` - 1, all when None, each with its piece's number.

    A line is of the piece in which its first byte lies. A piece in which none begins is passed over.
    """
    at = _skip_to(stream, max(0, first * piece_bytes - 1), block_bytes)
    rest = b""
    if first:  # from the byte before: a line may begin with the piece itself
        rest, at = _skip_line(stream, at, block_bytes)
    while True:
        data = stream.read(block_bytes)
        if len(rest) > _MAX_LINE_BYTES:
            raise EOFError(f"a line has more than {_MAX_LINE_BYTES:,} bytes")
        text = rest + data
        stop = text.rfind(b"\n") + 1 if data else len(text)
        whole, rest = text[:stop], text[stop:]
        for piece, block in _cut_pieces(whole, at, piece_bytes):
            if end is not None and piece >= end:
                return
            yield piece, block
        at += len(whole)
        if not data:
            return


def _cut_pieces(text: bytes, at: int, piece_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines that begin at byte `at` of a text, cut where the first line of a next piece begins."""
    begin = 0
    while begin < len(text):
        piece = (at + begin) // piece_bytes
        # The last line that begins in the piece ends at the first newline from the piece's last byte on.
        newline = text.find(b"\n", max(begin, (piece + 1) * piece_bytes - 1 - at))
        stop = len(text) if newline < 0 else newline + 1
        yield piece, text[begin:stop]
        begin = stop


def _skip_to(stream: ByteStream, position: int, block_bytes: int) -> int:
    """Go forward to byte `position` of a stream at its start; returns where it is."""
    if position and isinstance(stream, io.BufferedReader):
        return stream.seek(position)
    at = 0
    while at < position and (data := stream.read(min(block_bytes, position - at))):
        at += len(data)
    return at


def _skip_line(stream: ByteStream, at: int, block_bytes: int) -> tuple[bytes, int]:
    """What was read behind the next newline, and the byte at which that begins."""
    while data := stream.read(block_bytes):
        stop = data.find(b"\n") + 1
        if stop:
            return data[stop:], at + stop
        at += len(data)
    return b"", at


def read_ahead(blocks: Iterator[T]) -> Iterator[T]:
    """The same blocks, each made by another thread while the one before is worked on."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(next, blocks, None)
        while (block := pending.result()) is not None:
            pending = pool.submit(next, blocks, None)
            yield block


def count_lines(data: bytes) -> int:
    """Lines of `data`, blank ones included; the last may lack its newline."""
    newlines = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
    return newlines + (not data.endswith(b"\n"))


def cut_lines(data: bytes, max_lines: int) -> bytes:
    """The first `max_lines` lines of `data`."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    return data if len(ends) < max_lines else data[: int(ends[max_lines - 1]) + 1]


def _find_in_package(spec: str) -> Path:
    name, _, inner = spec.removeprefix(PACKAGE_PREFIX).partition("/")
    parts = PurePosixPath(inner).parts
    if not name.isidentifier() or not parts or ".." in parts:
        raise InputFileError(
            f"data file {spec!r} is not package:<name>/<path>, such as package:arch/data/vix/vix.csv.gz"
        )
    # A top-level name is looked up without importing the package: data needs none of its code.
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise InputFileError(f"data file {spec} is in package {name!r}, which is not installed: pip install {name}")
    folders = [Path(place) for place in found.submodule_search_locations]
    return next((folder / inner for folder in folders if (folder / inner).exists()), folders[0] / inner)
