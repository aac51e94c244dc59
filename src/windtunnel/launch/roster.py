"""A study's trials by name, read from plan.json without checking each field: ten thousand take half a second."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.plan import Plan

PLAN = "plan.json"


@dataclass(frozen=True)
class Row:
    """One trial as a list of trials names it."""

    id: str
    name: str
    steps: int
    """Steps after which it is done; 0 where its program says so itself."""
    nodes: int
    time_min: int


@dataclass(frozen=True)
class Roster:
    """The study's trials, each once, and what was refused."""

    study: str
    rows: tuple[Row, ...]
    pruned: tuple[tuple[str, str], ...]
    """Name and reason of each combination that is not run."""


def read_roster(folder: Path) -> Roster:
    """The roster of the study in `folder`; raises InputFileError without a plan, ArtifactError for a damaged one."""
    content = read_content(folder / PLAN, Plan.SCHEMA)
    try:
        rows = {plain["id"]: _read_row(plain) for plain in content["trials"]}
        pruned = tuple((plain["name"], plain["reason"]) for plain in content["pruned"])
        return Roster(content["study"], tuple(rows.values()), pruned)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{folder / PLAN} does not hold a {Plan.SCHEMA}: {error!r}") from error


def read_content(path: Path, schema: str) -> Any:
    """The content of the artifact at `path` as plain values; raises as `read_artifact` does."""
    try:
        document = from_json(path.read_bytes())
    except FileNotFoundError:
        raise InputFileError(f"{path} does not exist: plan the study first") from None
    except OSError as error:
        raise InputFileError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise ArtifactError(f"{path} is damaged: {error}: remove it: `windtunnel sweep` makes it again") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise ArtifactError(f"{path} has schema {found!r}, expected {schema!r}: make it again with this version")
    return document.get("content")


def _read_row(plain: Mapping[str, Any]) -> Row:
    settings, shape = plain["settings"], plain["shape"]
    group = "workload" if settings.get("workload", {}).get("kind") == "command" else "training"
    return Row(plain["id"], plain["name"], int(settings[group]["steps"]), shape["nodes"], shape["time_min"])
