"""Files whose every block of 4 MiB has a hash of its own: written, checked and read in one pass each. No torch."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from windtunnel.errors import CheckpointError

BLOCK_BYTES = 4 << 20
_MAX_PARTS = 512
"""Of one writev; Linux takes 1024."""


@dataclass(frozen=True)
class BlockFile:
    """A file of a checkpoint, named relative to its folder."""

    file: str
    bytes: int
    blocks: tuple[str, ...]
    """SHA-256 of each `BLOCK_BYTES` in hex; the last block may be shorter, an empty file has none."""


class BlockWriter:
    """Writes a new file front to back; a context manager that makes it durable, unless an error leaves the block.

    What it is given must stay as it is until the end: it is written block by block, without a copy.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._digest = hashlib.sha256()
        self._blocks: list[str] = []
        self._pending: list[memoryview] = []
        self.position = 0
        """Bytes written so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
                os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes; hashing and writing hold no interpreter lock. Raises OSError when the disk takes no more."""
        view = memoryview(data).cast("B")
        while view:
            part = view[: BLOCK_BYTES - self.position % BLOCK_BYTES]
            self._digest.update(part)
            self._pending.append(part)
            self.position += len(part)
            if self.position % BLOCK_BYTES == 0:
                self._blocks.append(self._digest.hexdigest())
                self._digest = hashlib.sha256()
            if self.position % BLOCK_BYTES == 0 or len(self._pending) == _MAX_PARTS:
                self._flush()
            view = view[len(part) :]

    def describe(self) -> BlockFile:
        """What was written, with the hash of what is left of the last block."""
        rest = (self._digest.hexdigest(),) if self.position % BLOCK_BYTES else ()
        return BlockFile(self._path.name, self.position, (*self._blocks, *rest))

    def _flush(self) -> None:
        parts, self._pending = self._pending, []
        while parts:
            written = os.writev(self._descriptor, parts)
            while parts and written >= len(parts[0]):
                written -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][written:]


class BlockReader:
    """Reads parts of a file, and hands out no byte of a block that is not what its hash says."""

    def __init__(self, folder: Path, record: BlockFile) -> None:
        """Raises CheckpointError when the file is missing or of another size."""
        self._name = f"{folder.name}/{record.file}"
        self._record = record
        reason = _check_size(folder / record.file, record, self._name)
        if reason:
            raise CheckpointError(reason)
        self._file = (folder / record.file).open("rb")
        self._held: tuple[int, bytes] = (-1, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read_into(self, target: memoryview, *, at: int) -> None:
        """Fill `target` with the bytes from `at` on; raises CheckpointError at a block that does not verify."""
        done = 0
        while done < len(target):
            number, offset = divmod(at + done, BLOCK_BYTES)
            part = self._read_block(number)[offset : offset + len(target) - done]
            if not part:
                raise CheckpointError(
                    f"{self._name} ends at {self._record.bytes} bytes: {at + len(target)} are needed"
                )
            target[done : done + len(part)] = part
            done += len(part)

    def _read_block(self, number: int) -> bytes:
        if self._held[0] != number:
            self._file.seek(number * BLOCK_BYTES)
            data = self._file.read(BLOCK_BYTES)
            reason = _check_block(data, number, self._record, self._name)
            if reason:
                raise CheckpointError(reason)
            self._held = (number, data)
        return self._held[1]


def check_blocks(folder: Path, record: BlockFile) -> str:
    """Why the file is not what `record` says, with the first bytes that differ; empty when every byte is right."""
    name = f"{folder.name}/{record.file}"
    reason = _check_size(folder / record.file, record, name)
    if reason:
        return reason
    try:
        found = (_check_block(data, number, record, name) for number, data in _read_blocks(folder / record.file))
        return next(filter(None, found), "")
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"


def find_bad_blocks(folder: Path, record: BlockFile) -> list[int]:
    """Numbers of the blocks that do not verify, those past the end of a file that was cut off among them."""
    return [number for number in range(len(record.blocks)) if not _is_good(folder / record.file, number, record)]


def _is_good(path: Path, number: int, record: BlockFile) -> bool:
    """Whether a block verifies; one that cannot be read does not, whatever is around it."""
    try:
        with path.open("rb") as file:
            file.seek(number * BLOCK_BYTES)
            data = file.read(BLOCK_BYTES)
    except OSError:
        return False
    return not _check_block(data, number, record, "")


def hash_blocks(path: Path) -> BlockFile:
    """The record of a file that somebody else wrote."""
    hashes = tuple(hashlib.sha256(data).hexdigest() for _, data in _read_blocks(path))
    return BlockFile(path.name, path.stat().st_size, hashes)


def _read_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb", buffering=0) as file:
        number = 0
        while data := file.read(BLOCK_BYTES):
            while len(data) < BLOCK_BYTES and (more := file.read(BLOCK_BYTES - len(data))):
                data += more
            yield number, data
            number += 1


def _check_size(path: Path, record: BlockFile, name: str) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return f"{name} is no file"
    if found.st_size != record.bytes:
        return f"{name} has {found.st_size} bytes, its manifest says {record.bytes}"
    return ""


def _check_block(data: bytes, number: int, record: BlockFile, name: str) -> str:
    first = number * BLOCK_BYTES
    if number >= len(record.blocks):
        return f"{name} has a block at byte {first} that its manifest does not know"
    found, wanted = hashlib.sha256(data).hexdigest(), record.blocks[number]
    if found == wanted:
        return ""
    where = f"bytes {first} to {first + len(data) - 1}"
    return f"{name}: {where} have SHA-256 {found[:12]}..., its manifest says {wanted[:12]}..."
