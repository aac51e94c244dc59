"""A dataset's shards looked at from outside: what is missing, cut or altered, and which rows it touches. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windtunnel.artifacts import check_file
from windtunnel.errors import InputFileError, WindtunnelError
from windtunnel.records.data import ShardEntry, ShardManifest
from windtunnel.shards.groups import find_bad_groups
from windtunnel.shards.manifest import MANIFEST, check_shard, read_manifest


@dataclass(frozen=True)
class Damage:
    """A file that is not what the manifest says."""

    file: str
    reason: str
    rows: tuple[tuple[int, int], ...] = ()
    """First row and end of each span of a shard that is touched; all of it where it cannot be told closer."""


@dataclass(frozen=True)
class Findings:
    """One dataset."""

    manifest: str
    shards: int
    rows: int
    bytes: int
    damages: tuple[Damage, ...]
    leftovers: tuple[str, ...]
    """Files of killed writers, and shards that no manifest names: nobody reads them."""


def find_manifests(where: Path) -> list[Path]:
    """The manifest that `where` is or holds, or those of all datasets and features of a store.

    Raises InputFileError where there are none. A folder of shards that lost its manifest counts: it is damage.
    """
    if where.name == MANIFEST or (where / MANIFEST).exists():
        return [where if where.name == MANIFEST else where / MANIFEST]
    folders = sorted(folder for kind in ("shards", "features") for folder in (where / kind).glob("*/"))
    found = [folder / MANIFEST for folder in folders if _holds_shards(folder)]
    if not found and _holds_shards(where):
        found = [where / MANIFEST]
    if not found:
        raise InputFileError(f"{where} holds no shards: name a dataset's folder, its {MANIFEST}, or a store")
    return found


def check_dataset(manifest_path: Path) -> Findings:
    """Read every byte that the manifest names."""
    folder = manifest_path.parent
    try:
        manifest = read_manifest(manifest_path)
    except WindtunnelError as error:
        known = tuple(sorted(path.name for path in folder.glob("*.h5")))
        return Findings(str(manifest_path), 0, 0, 0, (Damage(MANIFEST, str(error)),), known)
    damages = (*_check_itself(manifest), *_check_shards(folder, manifest), *_check_quarantine(folder, manifest))
    return Findings(
        manifest=str(manifest_path),
        shards=len(manifest.shards),
        rows=sum(entry.rows for entry in manifest.shards),
        bytes=sum(entry.bytes for entry in manifest.shards),
        damages=damages,
        leftovers=tuple(list_leftovers(folder, manifest)),
    )


def list_leftovers(folder: Path, manifest: ShardManifest) -> list[str]:
    """Names of files that the manifest does not account for and that once were, or were to be, shards."""
    known = {entry.file for entry in manifest.shards}
    names = (path.name for path in folder.iterdir() if path.is_file())
    return sorted(name for name in names if (name.endswith(".h5") or _is_temporary(name)) and name not in known)


def _check_itself(manifest: ShardManifest) -> Iterator[Damage]:
    if not manifest.sha256:
        yield Damage(MANIFEST, f"{MANIFEST} carries no hash of itself: it was not published by a stage")
    kept = sum(item.rows_kept for item in manifest.inputs)
    rows = sum(entry.rows for entry in manifest.shards)
    if manifest.kind == "raw" and kept != rows:
        yield Damage(MANIFEST, f"{MANIFEST} counts {kept} rows kept, its shards have {rows}")


def _check_shards(folder: Path, manifest: ShardManifest) -> Iterator[Damage]:
    for entry in manifest.shards:
        reason = check_shard(folder, entry)
        if reason:
            yield Damage(entry.file, reason, _find_rows(entry, folder / entry.file))


def _check_quarantine(folder: Path, manifest: ShardManifest) -> Iterator[Damage]:
    if manifest.quarantine and manifest.quarantine_sha256:
        path = folder / manifest.quarantine
        size = path.stat().st_size if path.exists() else 0
        reason = check_file(path, size_bytes=size, sha256=manifest.quarantine_sha256, name=str(path))
        if reason:
            yield Damage(manifest.quarantine, reason)


def _find_rows(entry: ShardEntry, path: Path) -> tuple[tuple[int, int], ...]:
    if not path.exists() or entry.chunk_rows == 0:
        return ((0, entry.rows),)
    bad = sorted(find_bad_groups(entry, path))
    return tuple((at * entry.chunk_rows, min((at + 1) * entry.chunk_rows, entry.rows)) for at in bad)


def _holds_shards(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or any(folder.glob("*.h5"))


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
