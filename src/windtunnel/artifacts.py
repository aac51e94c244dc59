"""Artifacts: what stages hand to each other. Written atomically, stamped with a schema, read back as records.

A record is a frozen dataclass with a class attribute `SCHEMA = "name/version"`. This module knows no stage.
"""

import dataclasses
import hashlib
import json
import os
import platform
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from windtunnel import __version__
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.yamltext import render_yaml

_BLOCK_BYTES = 1 << 20
_AGAIN = "rm {}, and the command that you typed makes it again"
_UNSIGNED = b'"sha256": ""'
# libyaml's, ten times as fast, wherever PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Record(Protocol):
    """A dataclass that crosses a file."""

    SCHEMA: ClassVar[str]


R = TypeVar("R", bound=Record)


def write_artifact(path: Path, record: Record, *, settings_hash: str = "") -> Path:
    """Publish `record` at `path` (JSON, or YAML by the suffix), stamped; nobody ever sees half a file."""
    return write_atomic(path, render_artifact(record, suffix=path.suffix, settings_hash=settings_hash).encode())


def render_artifact(record: Record, *, suffix: str = ".json", settings_hash: str = "") -> str:
    """The text of `record`'s file, stamped."""
    document = {
        "schema": record.SCHEMA,
        "settings_hash": settings_hash,
        "provenance": read_provenance(),
        "content": to_plain(record),
    }
    return render_yaml(document) if suffix == ".yaml" else json.dumps(document, indent=1) + "\n"


def read_artifact(path: Path, kind: type[R]) -> R:
    """The record at `path`; raises InputFileError when it is missing, ArtifactError for another schema or damage."""
    document = read_document(path)
    if document.get("schema") != kind.SCHEMA:
        raise ArtifactError(explain_schema(path, document, kind.SCHEMA))
    try:
        content: R = _adapter(kind).validate_python(document["content"])
        return content
    except KeyError:
        raise ArtifactError(f"{path} has no content: {_AGAIN.format(path)}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "its content"
        raise ArtifactError(f"{path} is no {kind.SCHEMA} ({where}: {first['msg']}): {_AGAIN.format(path)}") from error


def write_signed(path: Path, record: Record, *, settings_hash: str = "") -> Path:
    """Publish a record whose field `sha256` is empty, with the hash of its own file there."""
    unsigned = render_artifact(record, settings_hash=settings_hash).encode()
    assert unsigned.count(_UNSIGNED) == 1, "expected one empty field sha256"
    return write_atomic(path, unsigned.replace(_UNSIGNED, _sign(hashlib.sha256(unsigned).hexdigest())))


def is_signed_by(path: Path, sha256: str) -> bool:
    """Whether not a byte of the file at `path`, which names `sha256` as its own, has changed since it was signed."""
    unsigned = path.read_bytes().replace(_sign(sha256), _UNSIGNED)
    return hashlib.sha256(unsigned).hexdigest() == sha256


def read_document(path: Path) -> dict[str, Any]:
    """The whole stamped document at `path`, its content not yet checked."""
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        raise InputFileError(f"{path} does not exist: run the stage that makes it first") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"{path} cannot be read: {error}: {_AGAIN.format(path)}") from error
    try:
        document = yaml.load(text, Loader=_LOADER) if path.suffix == ".yaml" else json.loads(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:  # a number may have too many digits
        raise ArtifactError(f"{path} is damaged ({error}): {_AGAIN.format(path)}") from error
    if not isinstance(document, dict):
        held = type(document).__name__
        raise ArtifactError(f"{path} is damaged (it holds a {held}, expected a mapping): {_AGAIN.format(path)}")
    return document


def to_plain(value: Any) -> Any:
    """Dataclasses, models, paths, enums and tuples as JSON's own types."""
    kind: type = type(value)
    return _adapter(kind).dump_python(value, mode="json")


def write_atomic(path: Path, data: bytes) -> Path:
    """Write beside `path`, fsync, rename, fsync the folder."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        _write_new(temporary, data)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_dir(path.parent)
    return path


def fsync_file(path: Path) -> None:
    """Make the bytes of a closed file durable, whoever wrote them."""
    _fsync(path)


def fsync_dir(folder: Path) -> None:
    """Make the names in `folder` durable."""
    _fsync(folder)


def hash_json(value: Any) -> str:
    """SHA-256 in hex of a value's canonical JSON (sorted keys, no spaces)."""
    plain = to_plain(value) if dataclasses.is_dataclass(value) or hasattr(value, "model_dump") else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_file(path: Path) -> str:
    """SHA-256 in hex of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def check_file(path: Path, *, size_bytes: int, sha256: str, name: str) -> str:
    """Why the file at `path` is not what its manifest says, calling it `name`; empty when every byte is right."""
    try:
        found_bytes = path.stat().st_size
        if found_bytes != size_bytes:
            return f"{name} has {found_bytes} bytes, its manifest says {size_bytes}"
        found = hash_file(path)
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    if found != sha256:
        return f"{name} has SHA-256 {found[:12]}..., its manifest says {sha256[:12]}..."
    return ""


def read_provenance() -> dict[str, str]:
    """Code version, machine and moment, as each artifact carries them."""
    return {**_machine(), "created": datetime.now(UTC).isoformat(timespec="seconds")}


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    # Building one takes as long as reading fifty artifacts.
    return TypeAdapter(kind)


def explain_schema(path: Path, document: dict[str, Any], wanted: str) -> str:
    """Why a document is not read, and the command that mends it."""
    found, provenance = str(document.get("schema")), document.get("provenance")
    writer = str(provenance.get("windtunnel", "unknown")) if isinstance(provenance, dict) else "unknown"
    told = f"{path} has schema {found!r} (written by windtunnel {writer}), expected {wanted!r}"
    (name, _, version), (kind, _, ours) = found.partition("/"), wanted.partition("/")
    if name != kind:
        return f"{told}: it is another kind of file, name the right one"
    if version.isdecimal() and int(version) > int(ours):
        return f"{told}: it is newer than this version: pip install windtunnel=={writer}, or a later one"
    return f"{told}: it is of another version: {_AGAIN.format(path)}"


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _sign(digest: str) -> bytes:
    return _UNSIGNED.replace(b'""', f'"{digest}"'.encode())


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@cache
def _machine() -> dict[str, str]:
    return {
        "windtunnel": __version__,
        "python": platform.python_version(),
        "host": platform.node(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs",
    }
