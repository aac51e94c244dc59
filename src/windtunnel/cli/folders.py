"""From what people type to a study's folder, and to a trial in it. Composes nothing where there is a plan."""

import sys
from collections.abc import Mapping
from pathlib import Path

from windtunnel.errors import ArtifactError, InputFileError, StudyError, UnplannedError
from windtunnel.launch.board import render_holder
from windtunnel.launch.overview import read_driver
from windtunnel.launch.place import LOG
from windtunnel.launch.roster import PLAN, Roster, Row, read_roster
from windtunnel.launch.seek import find_row

RESULTS = Path("results")


def list_study_folders(results: Path | None) -> list[Path]:
    """Folders of the results that hold a plan, by name."""
    return sorted(path.parent for path in (results or RESULTS).glob(f"*/{PLAN}"))


def find_study_folder(study: str, results: Path | None) -> Path:
    """Where a study's plan is: below the results, or the folder itself. Raises StudyError with the known ones.

    Only where there is none are the study's settings composed, for their `paths.results`.
    """
    places = ((results or RESULTS) / study, Path(study))
    for folder in places:
        if _has_plan(folder):
            return folder
    composed = _compose_folder(study) if results is None else None
    if composed is not None and _has_plan(composed):
        return composed
    for folder in (*places, *([composed] if composed is not None else [])):
        told = tell_driver_without_plan(folder)
        if told:
            raise UnplannedError(told)
    known = ", ".join(path.name for path in list_study_folders(results)) or "none"
    hint = f"`windtunnel sweep {study}` makes it" if composed is not None else "or say where, with --results DIR"
    raise StudyError(f"no plan of study {study!r} in {composed or results or RESULTS} (known: {known}); {hint}")


def list_begun(results: Path | None) -> list[str]:
    """What drivers of studies without a plan are at, a line each."""
    leases = sorted((results or RESULTS).glob("*/.driver"))
    return [line for lease in leases if (line := tell_driver_without_plan(lease.parent))]


def tell_driver_without_plan(folder: Path) -> str:
    """What the driver of a study that has no plan yet is at; empty without one."""
    driver = read_driver(folder) if not _has_plan(folder) else None
    if driver is None:
        return ""
    log = f"; its log: {folder / LOG}" if (folder / LOG).is_file() else ""
    return f"study {folder.name} has no plan yet: its driver, {render_holder(driver)}, is at work on it{log}"


def find_trial(word: str, rosters: Mapping[Path, Roster], *, where: str) -> tuple[Path, Row]:
    """The folder and the row of the trial that `word` means; `where` names what was searched."""
    # Studies share trials; the first study's name for one is as good as another's.
    owners = {row.id: (folder, row) for folder, roster in reversed([*rosters.items()]) for row in roster.rows}
    return owners[find_row([row for _, row in owners.values()], word, where=where).id]


def read_rosters(study: str | None, results: Path | None) -> dict[Path, Roster]:
    """The roster of one study, or of all, by folder. Of all, one that cannot be read is left out: stderr says why."""
    if study:
        folder = find_study_folder(study, results)
        return {folder: read_roster(folder)}
    rosters = {}
    for folder in list_study_folders(results):
        try:
            rosters[folder] = read_roster(folder)
        except (ArtifactError, InputFileError) as error:
            print(f"left out: {render_unreadable(folder, error)}", file=sys.stderr, flush=True)
    return rosters


def name_searched(study: str | None, results: Path | None) -> str:
    """What `read_rosters` read, for a message."""
    return f"study {study}" if study else f"any study of {results or RESULTS}"


def render_unreadable(folder: Path, error: Exception) -> str:
    """A study that cannot be read, in one line."""
    return f"{folder.name}: {' '.join(str(error).split())}"


def _has_plan(folder: Path) -> bool:
    try:
        return (folder / PLAN).is_file()
    except OSError as error:
        raise StudyError(f"study {folder.name[:40]!r}...: {error.strerror}: correct the name") from None


def _compose_folder(study: str) -> Path | None:
    from windtunnel.cli.compose import compose_study, list_studies

    project = Path.cwd()
    if study not in list_studies(project):
        return None
    return Path(compose_study(study, project=project).paths.results) / study
