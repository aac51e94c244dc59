"""A receipt for each shard, beside it: what it was made from and how, so that a rerun keeps what is still right.

Snakemake removes the manifest before each run; receipts stay with the shards.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from windtunnel.artifacts import hash_json, read_artifact, write_artifact
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.data import Column, InputFile, ShardEntry
from windtunnel.settings.data import DataSettings
from windtunnel.shards.manifest import check_shard

_CODE = ("ingest", "shards")


@dataclass(frozen=True)
class Receipt:
    """One raw file's way to its shard; `key` hashes everything that the shard's bytes follow from."""

    SCHEMA: ClassVar[str] = "windtunnel.ingest_receipt/1"

    key: str
    input: InputFile
    shard: ShardEntry
    columns: tuple[Column, ...]
    quarantined: tuple[tuple[int, str, str], ...]
    """Line, reason and raw text of each row that did not fit."""


def make_key(settings: DataSettings, *, instrument: str, input_sha256: str, code_sha256: str) -> str:
    """Hash of a raw file's content, the settings that shape its shard, and the code that makes it."""
    shaping = {
        "source": settings.source,
        "max_rows": settings.max_rows,
        "compression": settings.compression,
        "chunk_rows": settings.chunk_rows,
    }
    return hash_json([shaping, instrument, input_sha256, code_sha256])


def hash_code() -> str:
    """Hash of the packages that decide a shard's bytes."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for package in _CODE:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def receipt_path(folder: Path, stem: str) -> Path:
    """Where the receipt of shard `stem` lies."""
    return folder / ".receipts" / f"{stem}.json"


def write_receipt(folder: Path, stem: str, receipt: Receipt) -> None:
    """Publish a receipt; do so after its shard."""
    write_artifact(receipt_path(folder, stem), receipt)


def find_receipt(folder: Path, stem: str, *, key: str) -> Receipt | None:
    """The receipt of a shard that is still right: same key, and the shard's bytes verify."""
    try:
        receipt = read_artifact(receipt_path(folder, stem), Receipt)
    except (InputFileError, ArtifactError):
        return None  # never made, or cut off: the shard is made again
    if receipt.key != key or check_shard(folder, receipt.shard):
        return None
    return receipt
