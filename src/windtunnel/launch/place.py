"""Where a study's sweep keeps its trials and how it was set: written by the sweep for whoever looks at it later."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from windtunnel.artifacts import read_artifact, to_plain, write_artifact
from windtunnel.errors import ArtifactError, InputFileError

if TYPE_CHECKING:
    from windtunnel.settings.study import SweepStageSettings

PLACE = "place.json"
"""Beside `plan.json`."""
LOG = "driver.log"
"""Beside it too: what a driver that nobody sees says."""
COMMAND_ENV = "WINDTUNNEL_COMMAND"
"""Variable with the command that people typed, for the stage that it started."""


@dataclass(frozen=True)
class SweepPlace:
    """Absolute paths; before a study's first sweep, what is most likely."""

    SCHEMA: ClassVar[str] = "windtunnel.place/1"

    study: str
    store: str
    """Folder of `trials/`."""
    jobs_dir: str
    """Where the study's job scripts and their logs are."""
    command: str
    """What goes on with the sweep, as one types it."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The sweep's settings and cluster, resolved; empty before a study's first sweep."""

    def get(self, group: str, name: str, default: Any) -> Any:
        """A setting of `sweep` or `cluster`."""
        return self.settings.get(group, {}).get(name, default)


def write_sweep_place(settings: "SweepStageSettings", *, out: Path, store: Path, command: str) -> None:
    """Let others find the sweep that is about to make `out`; `command` goes on with it."""
    folder = out.parent.resolve()
    jobs_dir = str(folder / "jobs")
    write_place(folder, SweepPlace(settings.study, str(store.resolve()), jobs_dir, command, to_plain(settings)))


def write_place(folder: Path, place: SweepPlace) -> None:
    """Publish the place, unless it is there already."""
    try:
        if read_artifact(folder / PLACE, SweepPlace) == place:
            return
    except (ArtifactError, InputFileError):
        pass
    write_artifact(folder / PLACE, place)


def read_place(folder: Path) -> SweepPlace:
    """The place of the sweep in `folder`; without a readable record, the store is beside the study's own folder."""
    try:
        return read_artifact(folder / PLACE, SweepPlace)
    except (ArtifactError, InputFileError):
        study = folder.resolve()
        return SweepPlace(study.name, str(study.parent), str(study / "jobs"), f"windtunnel sweep {study.name}")
