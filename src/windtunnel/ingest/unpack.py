"""Raw files as text: plain, gzip, zstd, or the members of a zip, told by their first bytes and not by their names.

Refuses what could do harm or lose rows: names that lead out of a folder, absurd ratios, damage, a torn end.
"""

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

import zstandard
from isal import igzip, isal_zlib

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import ByteStream, RawFile

MAX_RATIO = 300
"""Unpacked to packed bytes: market text has 5 to 30, and what only fills memory has 1000 and more."""
_RATIO_FROM_BYTES = 64 << 20
_GZIP, _ZSTD, _ZIPS = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD_READ_BYTES = 1 << 14  # at the highest ratio that is let through, some MiB of text
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}
_ENCRYPTED = 0x1
_DAMAGED: tuple[type[Exception], ...] = (
    gzip.BadGzipFile,
    zlib.error,
    isal_zlib.error,  # type: ignore[assignment]  # its stub calls the class a value
    EOFError,
    zstandard.ZstdError,
)


@dataclass(frozen=True)
class Member:
    """One text inside a raw file; `name` is empty outside of a zip, `bytes` is None where only unpacking tells."""

    packing: str
    """`plain`, `gzip`, `zstd` or `zip`."""
    name: str = ""
    bytes: int | None = None


def list_members(raw: RawFile) -> tuple[Member, ...]:
    """The texts of `raw` by name; raises InputFileError for one that is unsafe, damaged or not what its name says."""
    packing = find_packing(raw)
    if packing == "plain":
        return (Member(packing, bytes=raw.bytes),)
    return _list_zip(raw) if packing == "zip" else (Member(packing),)


def find_packing(raw: RawFile) -> str:
    """How `raw` is packed, by its first bytes; raises InputFileError when its name says another way."""
    with _name_damage(raw), raw.path.open("rb") as file:
        start = file.read(4)
    found = "plain"
    if start.startswith(_GZIP):
        found = "gzip"
    elif start == _ZSTD:
        found = "zstd"
    elif start in _ZIPS:
        found = "zip"
    named = _SUFFIXES.get(raw.path.suffix.lower(), found)
    if named != found:
        raise InputFileError(
            f"data file {raw.spec} is named {raw.path.suffix} but is not {named}: fetch it again or rename it"
        )
    return found


@contextmanager
def open_member(raw: RawFile, member: Member) -> Iterator[ByteStream]:
    """A stream of the member's text; damage that is met inside the block is an InputFileError that names the file."""
    with _name_damage(raw), raw.path.open("rb") as file:
        if member.packing == "plain":
            yield file
        elif member.packing == "zip":
            with zipfile.ZipFile(file) as archive, archive.open(member.name) as unpacked:
                _inflate_faster(unpacked, archive.getinfo(member.name))
                yield unpacked
        elif member.packing == "gzip":
            with igzip.open(file) as unpacked:
                yield BoundedStream(raw, unpacked)
        else:
            yield BoundedStream(raw, _ZstdStream(file))


class BoundedStream:
    """A stream that ends with an error once it has given absurdly more than its file holds."""

    def __init__(self, raw: RawFile, stream: ByteStream) -> None:
        self._raw = raw
        self._stream = stream
        self._given = 0

    def read(self, size: int = -1, /) -> bytes:
        """As the stream does."""
        data = self._stream.read(size)
        self._given += len(data)
        check_ratio(self._raw, self._given, self._raw.bytes)
        return data


def check_ratio(raw: RawFile, unpacked: int, packed: int, member: str = "") -> None:
    """Raise InputFileError when so many bytes cannot be market data."""
    if unpacked > _RATIO_FROM_BYTES and unpacked > MAX_RATIO * max(packed, 1):
        what = f"its member {member!r}" if member else "it"
        raise InputFileError(
            f"data file {raw.spec}: {what} unpacks to {unpacked:,} bytes or more from {packed:,}, expected at most "
            f"{MAX_RATIO} times as many: it is no market data; unpack it yourself if it is"
        )


class _ZstdStream:
    """Frames one after the other, and an error at a torn end, which zstandard's own reader passes over."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._packed = b""
        self._text = bytearray()
        self._is_within = False

    def read(self, size: int = -1, /) -> bytes:
        while (size < 0 or len(self._text) < size) and self._unpack_more():
            pass
        count = len(self._text) if size < 0 else size
        data = bytes(self._text[:count])
        del self._text[:count]
        return data

    def _unpack_more(self) -> bool:
        packed = self._packed or self._file.read(_ZSTD_READ_BYTES)
        if not packed:
            if self._is_within:
                raise EOFError("its last frame ends too early")
            return False
        if self._frame.eof:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._text += self._frame.decompress(packed)
        self._is_within = not self._frame.eof
        self._packed = self._frame.unused_data if self._frame.eof else b""
        return True


def _list_zip(raw: RawFile) -> tuple[Member, ...]:
    with _name_damage(raw), zipfile.ZipFile(raw.path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
    for info in infos:
        _check_member(raw, info)
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputFileError(f"data file {raw.spec} holds {twice!r} twice: which one is it? Pack it again")
    return tuple(Member("zip", info.filename, info.file_size) for info in sorted(infos, key=lambda i: i.filename))


def _inflate_faster(unpacked: Any, info: zipfile.ZipInfo) -> None:
    """Let ISA-L inflate a member, in half of zlib's time; the rest of zipfile, and its check of the CRC, stay."""
    if info.compress_type == zipfile.ZIP_DEFLATED and hasattr(unpacked, "_decompressor"):
        unpacked._decompressor = isal_zlib.decompressobj(-zlib.MAX_WBITS)


def _check_member(raw: RawFile, info: zipfile.ZipInfo) -> None:
    posix, windows = PurePosixPath(info.filename), PureWindowsPath(info.filename)
    if posix.is_absolute() or windows.drive or windows.root or ".." in {*posix.parts, *windows.parts}:
        raise InputFileError(
            f"data file {raw.spec} holds {info.filename!r}, a name that leads out of its folder: it is no data file"
        )
    if not info.filename.isprintable():
        raise InputFileError(
            f"data file {raw.spec} holds {info.filename!a}, which is no printable name: pack it again"
        )
    if info.flag_bits & _ENCRYPTED:
        raise InputFileError(f"data file {raw.spec} holds {info.filename!r} behind a password: pack it without one")
    check_ratio(raw, info.file_size, info.compress_size, info.filename)


@contextmanager
def _name_damage(raw: RawFile) -> Iterator[None]:
    try:
        yield
    except zipfile.BadZipFile as error:
        raise InputFileError(f"data file {raw.spec} is a damaged zip ({error}): fetch it again") from error
    except _DAMAGED as error:
        raise InputFileError(f"data file {raw.spec} is damaged or cut off ({error}): fetch it again") from error
    except (RuntimeError, NotImplementedError) as error:  # zipfile's word for an unknown method
        raise InputFileError(
            f"data file {raw.spec} cannot be unpacked ({error}): pack it again as a plain zip"
        ) from error
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error
