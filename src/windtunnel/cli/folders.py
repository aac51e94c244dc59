"""From what people type to a study's folder, and to a trial in it. Composes nothing where there is a plan."""

from collections.abc import Sequence
from pathlib import Path

from windtunnel.errors import StudyError
from windtunnel.launch.roster import PLAN, Row, read_roster
from windtunnel.launch.seek import find_row

RESULTS = Path("results")


def list_study_folders(results: Path | None) -> list[Path]:
    """Folders of the results that hold a plan, by name."""
    return sorted(path.parent for path in (results or RESULTS).glob(f"*/{PLAN}"))


def find_study_folder(study: str, results: Path | None) -> Path:
    """Where a study's plan is: below the results, or the folder itself. Raises StudyError with the known ones.

    Only where there is none are the study's settings composed, for their `paths.results`.
    """
    for folder in ((results or RESULTS) / study, Path(study)):
        if (folder / PLAN).is_file():
            return folder
    composed = _compose_folder(study) if results is None else None
    if composed is not None and (composed / PLAN).is_file():
        return composed
    known = ", ".join(path.name for path in list_study_folders(results)) or "none"
    hint = f"`windtunnel sweep {study}` makes it" if composed is not None else "or say where, with --results DIR"
    raise StudyError(f"no plan of study {study!r} in {composed or results or RESULTS} (known: {known}); {hint}")


def find_trial(word: str, *, study: str | None, results: Path | None) -> tuple[Path, Row]:
    """The folder and the row of the trial that `word` means, in one study or in all."""
    folders = list_folders(study, results)
    # Studies share trials; the first study's name for one is as good as another's.
    owners = {row.id: (folder, row) for folder in reversed(folders) for row in read_roster(folder).rows}
    where = f"study {study}" if study else f"any study of {results or RESULTS}"
    return owners[find_row(_rows(list(owners.values())), word, where=where).id]


def list_folders(study: str | None, results: Path | None) -> list[Path]:
    """One study's folder, or all."""
    return [find_study_folder(study, results)] if study else list_study_folders(results)


def _rows(owners: Sequence[tuple[Path, Row]]) -> list[Row]:
    return [row for _, row in owners]


def _compose_folder(study: str) -> Path | None:
    from windtunnel.cli.compose import compose_study, list_studies

    project = Path.cwd()
    if study not in list_studies(project):
        return None
    return Path(compose_study(study, project=project).paths.results) / study
