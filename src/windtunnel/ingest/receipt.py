"""A receipt for each piece, beside its shard: what it was made from and how. A rerun keeps what is still right.

Snakemake removes the manifest before each run; receipts stay with the shards.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from windtunnel.artifacts import hash_json, read_artifact, to_plain, write_artifact
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.data import ShardEntry
from windtunnel.settings.data import DataSettings
from windtunnel.shards.manifest import check_shard

_CODE = ("ingest", "shards")
_SHAPING = ("source", "text", "max_rows", "compression", "chunk_rows", "shard_text")


@dataclass(frozen=True)
class Receipt:
    """One piece's way to its shard; `key` hashes everything that the shard's bytes follow from."""

    SCHEMA: ClassVar[str] = "windtunnel.ingest_receipt/2"

    key: str
    piece: int
    is_last: bool
    """Whether its text ends with it."""
    rows_in: int
    lines: int
    flagged: Mapping[str, int]
    shard: ShardEntry | None
    """None where no row was kept."""
    quarantined: tuple[tuple[int, str, str], ...]
    """Line in the piece, reason and raw text of each row that did not fit."""


def make_key(settings: DataSettings, *, stem: str, member: str, input_sha256: str) -> str:
    """Hash of a raw file's content, the settings that shape its shards, and the code that makes them."""
    plain = to_plain(settings)
    return hash_json([{name: plain[name] for name in _SHAPING}, stem, member, input_sha256, hash_code()])


@cache
def hash_code() -> str:
    """Hash of the packages that decide a shard's bytes."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for package in _CODE:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def name_shard(stem: str, piece: int) -> str:
    """File of a piece's shard; no stem has a dash."""
    return f"{stem}.h5" if piece == 0 else f"{stem}-{piece:05d}.h5"


def receipt_path(folder: Path, stem: str, piece: int = 0) -> Path:
    """Where the receipt of a piece lies."""
    return folder / ".receipts" / f"{name_shard(stem, piece).removesuffix('.h5')}.json"


def write_receipt(folder: Path, stem: str, receipt: Receipt) -> None:
    """Publish a receipt; do so after its shard."""
    write_artifact(receipt_path(folder, stem, receipt.piece), receipt)


def read_receipt(folder: Path, stem: str, piece: int, *, key: str) -> Receipt | None:
    """The receipt of a piece with this key; None where it was never made, cut off, or of something else."""
    receipt = _read(folder, stem, piece)
    return receipt if receipt is not None and receipt.key == key and receipt.piece == piece else None


def was_of_another_file(folder: Path, stem: str, *, input_sha256: str) -> bool:
    """Whether the shard of this name was made of other bytes than the raw file has now."""
    receipt = _read(folder, stem, 0)
    return receipt is not None and receipt.shard is not None and receipt.shard.input_sha256 != input_sha256


def is_right(folder: Path, receipt: Receipt) -> bool:
    """Whether the shard of a receipt is what was published."""
    return receipt.shard is None or not check_shard(folder, receipt.shard)


def _read(folder: Path, stem: str, piece: int) -> Receipt | None:
    try:
        return read_artifact(receipt_path(folder, stem, piece), Receipt)
    except (InputFileError, ArtifactError):
        return None
