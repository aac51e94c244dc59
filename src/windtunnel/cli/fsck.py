"""`windtunnel fsck checkpoints list|verify|explain`: tables and JSON of what `checkpoints.fsck` finds."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from windtunnel.artifacts import to_plain
from windtunnel.checkpoints.fsck import (
    Damage,
    Explanation,
    Found,
    describe_checkpoint,
    explain_checkpoint,
    find_checkpoints,
    find_resumable,
    list_aside,
)
from windtunnel.cli.folders import find_trial, name_searched, read_rosters
from windtunnel.launch.place import read_place
from windtunnel.ledger.layout import trial_folder
from windtunnel.units import format_bytes

_SHOWN_TENSORS = 4
"""Names of tensors in a line of damage."""


def run_fsck_checkpoints(action: str, where: str, *, study: str | None, results: Path | None, as_json: bool) -> int:
    """Print what was asked for; 1 when something was read that does not verify, else 0."""
    folder = _find_folder(where, study=study, results=results)
    paths = find_checkpoints(folder)
    if action == "explain":
        told = explain_checkpoint(paths[0])
        _print(_plain_explanation(paths[0], told) if as_json else render_explanation(paths[0], told))
        return 1 if told.reasons else 0
    found = [describe_checkpoint(path, read=action == "verify") for path in paths]
    aside = [str(path) for path in list_aside(folder)]
    _print(
        {"checkpoints": [asdict(item) for item in found], "set_aside": aside}
        if as_json
        else render_found(found, aside, read=action == "verify")
    )
    return 1 if any(item.reasons for item in found) else 0


def render_found(found: Sequence[Found], aside: Sequence[str], *, read: bool) -> list[str]:
    """A line for each, newest first, then which one a resume would take."""
    lines = [_render_one(item, read=read) for item in found]
    lines += [f"set aside by a resume: {path}" for path in aside]
    if read:
        next_one = find_resumable(found)
        lines.append(f"a resume goes on from step {next_one.step}" if next_one else "none verifies: no resume")
    return lines


def render_explanation(path: Path, told: Explanation) -> list[str]:
    """What a checkpoint holds, and its damage, in lines."""
    lines = [f"{path}: {'damaged' if told.reasons else 'whole'}", *(f"  {reason}" for reason in told.reasons)]
    if told.manifest is not None:
        manifest = told.manifest
        axes = " x ".join(f"{axis} {size}" for axis, size in manifest.layout.items())
        lines.append(
            f"trial {manifest.trial_id}, step {manifest.step}, generation {manifest.generation}, "
            f"{manifest.world_size} ranks{f' ({axes})' if axes else ''}, {format_bytes(manifest.bytes)}"
        )
        lines.append(f"settings {manifest.settings_sha256[:12]}, code {manifest.source_sha256[:12]}")
        lines += [f"file {item.file}: {format_bytes(item.bytes)}" for item in manifest.files]
    lines += [f"tensor {name}: {dtype} {list(shape)}" for name, dtype, shape in told.tensors]
    return [*lines, *(_render_damage(item) for item in told.damages)]


def _find_folder(where: str, *, study: str | None, results: Path | None) -> Path:
    if Path(where).is_dir():
        return Path(where).resolve()
    folder, row = find_trial(where, read_rosters(study, results), where=name_searched(study, results))
    return trial_folder(Path(read_place(folder).store), row.id).path


def _render_one(item: Found, *, read: bool) -> str:
    when = datetime.fromtimestamp(item.written_at, UTC).isoformat(sep=" ", timespec="seconds")
    size = format_bytes(item.bytes) if item.bytes is not None else "size unknown"
    loss = f", train loss {item.train_loss:.4f}" if item.train_loss is not None else ""
    state = "whole" if read else "not read"
    told = f"damaged: {'; '.join(item.reasons)}" if item.reasons else state
    return f"step {item.step}: {size}, written {when}, generation {item.generation}{loss}: {told}"


def _render_damage(item: Damage) -> str:
    names = ", ".join(item.tensors[:_SHOWN_TENSORS])
    more = len(item.tensors) - _SHOWN_TENSORS
    held = f"{names}{f' and {more} more' if more > 0 else ''}" if item.tensors else "no tensor"
    return f"damage in {item.file}, bytes {item.first_byte} to {item.last_byte}: {held}"


def _plain_explanation(path: Path, told: Explanation) -> dict[str, Any]:
    return {"path": str(path), **to_plain(told)}


def _print(told: dict[str, Any] | list[str]) -> None:
    print(json.dumps(told, indent=1) if isinstance(told, dict) else "\n".join(told), flush=True)
