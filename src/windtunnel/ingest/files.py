"""Raw files as settings name them: where they lie, that they can be read, and their bytes up to a number of lines."""

import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

import numpy as np

from windtunnel.artifacts import hash_file
from windtunnel.errors import InputFileError

PACKAGE_PREFIX = "package:"
_BLOCK_BYTES = 4 << 20


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
        size = path.stat().st_size
    except OSError as error:
        raise InputFileError(
            f"data file {spec} cannot be read ({error.strerror}): give this user access to {path}"
        ) from error
    if size == 0:
        raise InputFileError(f"data file {spec} is empty (0 bytes): fetch it again or take it out of data.files")
    return RawFile(spec, path, size)


def hash_raw_file(raw: RawFile) -> str:
    """SHA-256 in hex of a raw file's bytes; raises InputFileError when it cannot be read."""
    try:
        return hash_file(raw.path)
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error


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


def read_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
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
