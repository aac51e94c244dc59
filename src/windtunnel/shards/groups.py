"""Chunk groups: a chunk of every column, over the same rows. Where their bytes lie in a shard, and their checksums.

Whoever reads a window verifies the one or two groups that it touches, and never a whole shard.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import hdf5plugin  # noqa: F401  # registers the filters that shards are compressed with

from windtunnel.records.data import ShardEntry

SHARD_SCHEMA = "windtunnel.shard/2"


@dataclass(frozen=True)
class Chunk:
    """The stored bytes of one column over the rows of one group."""

    column: str
    at: int
    """First byte in the file."""
    bytes: int


@dataclass(frozen=True)
class Groups:
    """All groups of a shard in order of their rows; in each, columns by name."""

    chunk_rows: int
    chunks: tuple[tuple[Chunk, ...], ...]

    def crc32_of(self, number: int, data: bytes | memoryview) -> str:
        """CRC-32 in hex of group `number` of the shard whose bytes are `data`."""
        return crc32_of([memoryview(data)[chunk.at : chunk.at + chunk.bytes] for chunk in self.chunks[number]])


def crc32_of(parts: Sequence[bytes | memoryview]) -> str:
    """CRC-32 in hex of parts one after the other."""
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return f"{value:08x}"


def find_groups(path: Path) -> Groups:
    """The groups of the shard at `path`, by its own index; raises OSError, KeyError or RuntimeError for none."""
    with h5py.File(path, "r", locking=False) as file:
        chunk_rows = int(file.attrs["chunk_rows"])
        rows = int(file.attrs["rows"])
        found: list[list[Chunk]] = [[] for _ in range(-(-rows // chunk_rows))]
        for name in file:
            dataset = file[name].id

            def keep(info: h5py.h5d.StoreInfo, name: str = name) -> None:
                found[info.chunk_offset[0] // chunk_rows].append(Chunk(name, info.byte_offset, info.size))

            dataset.chunk_iter(keep)
    return Groups(chunk_rows, tuple(tuple(sorted(chunks, key=lambda chunk: chunk.column)) for chunks in found))


def find_bad_groups(entry: ShardEntry, path: Path) -> dict[int, tuple[str, ...]]:
    """Numbers of the groups whose bytes are not those of `entry`, each with its columns; all without an index."""
    every = range(len(entry.groups_crc32))
    try:
        groups, data = find_groups(path), path.read_bytes()
    except (OSError, KeyError, RuntimeError, ValueError, IndexError):
        return dict.fromkeys(every, ())
    if len(groups.chunks) != len(entry.groups_crc32):
        return dict.fromkeys(every, ())
    return {
        number: tuple(chunk.column for chunk in groups.chunks[number])
        for number in every
        if groups.crc32_of(number, data) != entry.groups_crc32[number]
    }
