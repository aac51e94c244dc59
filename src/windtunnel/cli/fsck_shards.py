"""`windtunnel fsck shards`: every byte of datasets held against their manifests, and bad shards made again."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from windtunnel.errors import WindtunnelError
from windtunnel.ingest.repair import repair_shards
from windtunnel.settings.base import read_settings
from windtunnel.settings.data import DataSettings
from windtunnel.shards.fsck import Damage, Findings, check_dataset, find_manifests
from windtunnel.shards.manifest import read_manifest
from windtunnel.units import format_bytes

_STALE_S = 3600.0
"""After which a temporary file's writer is taken for dead: a shard is written in seconds."""


@dataclass(frozen=True)
class Checked:
    """One dataset, what was made again there, and why anything was not."""

    found: Findings
    repaired: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing bad is left."""
        return len(self.repaired) == len(self.found.damages) and not self.failure


def run_fsck_shards(where: Path, *, repair: bool, settings: Path | None, as_json: bool) -> int:
    """Print what was found, dataset by dataset; 1 when something bad is left, else 0."""
    checked = []
    for path in find_manifests(where):
        found = check_dataset(path)
        checked.append(_repair(found, settings) if repair and (found.damages or found.leftovers) else Checked(found))
    plain = [{**asdict(item), "is_whole": item.is_whole} for item in checked]
    print(json.dumps(plain, indent=1) if as_json else "\n".join(render_checked(checked)), flush=True)
    return 0 if all(item.is_whole for item in checked) else 1


def render_checked(checked: Sequence[Checked]) -> Iterator[str]:
    """A line a dataset, and one for each damage."""
    for item in checked:
        found = item.found
        size = f"{found.shards} shards, {found.rows:,} rows, {format_bytes(found.bytes)}"
        yield f"{found.manifest}: {size}: {'whole' if item.is_whole else 'damaged'}"
        for damage in found.damages:
            again = " (made again)" if damage.file in item.repaired else ""
            yield f"  {damage.reason}{_render_rows(damage)}{again}"
        yield from (f"  left over: {name}" for name in found.leftovers)
        if item.failure:
            yield f"  not repaired: {item.failure}"


def _render_rows(damage: Damage) -> str:
    if not damage.rows:
        return ""
    spans = ", ".join(f"{first} to {end - 1}" for first, end in damage.rows[:3])
    return f"; rows {spans}{' and more' if len(damage.rows) > 3 else ''}"


def _repair(found: Findings, settings: Path | None) -> Checked:
    manifest_path = Path(found.manifest)
    names = tuple(damage.file for damage in found.damages)
    _remove_stale(manifest_path.parent, found.leftovers)
    try:
        if all(name.endswith(".h5") for name in names):
            repair_shards(read_manifest(manifest_path), names, folder=manifest_path.parent)
        else:
            _ingest_again(manifest_path, settings)
    except WindtunnelError as error:
        return Checked(found, failure=str(error))
    left = {damage.file for damage in check_dataset(manifest_path).damages}
    return Checked(found, tuple(name for name in names if name not in left))


def _ingest_again(manifest_path: Path, settings: Path | None) -> None:
    """Make a manifest or quarantine again, from the shards' receipts where these are right."""
    from windtunnel.comm.single import SingleComm
    from windtunnel.ingest.run import run_ingest

    if settings is not None:
        wanted = read_settings(DataSettings, settings)
    else:
        wanted = DataSettings.model_validate(dict(read_manifest(manifest_path).settings))
    run_ingest(wanted, out=manifest_path, comm=SingleComm())


def _remove_stale(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        path = folder / name
        if name.startswith(".") and time.time() - path.stat().st_mtime > _STALE_S:
            path.unlink(missing_ok=True)
