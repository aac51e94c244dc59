"""What will be read: each file's texts by its source, found before any row is. No MPI here."""

from collections.abc import Callable

from windtunnel.errors import SettingsError
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.sources.base import Source
from windtunnel.ingest.sources.daily_csv import DailyCsv
from windtunnel.ingest.sources.delimited import Delimited
from windtunnel.ingest.sources.lean_tick import LeanTick
from windtunnel.ingest.work import Job
from windtunnel.settings.data import DataSettings

SOURCES: dict[str, Callable[[DataSettings], Source]] = {
    "daily_csv": DailyCsv,
    "lean_tick": LeanTick,
    "delimited": Delimited,
}


def find_source(settings: DataSettings) -> Source:
    """The source that the settings name."""
    if settings.source not in SOURCES:
        raise SettingsError(f"data.source is {settings.source!r}, expected one of {', '.join(SOURCES)}")
    return SOURCES[settings.source](settings)


def plan_jobs(settings: DataSettings, source: Source) -> tuple[Job, ...]:
    """What will be read; raises UserError before any row is, when a file is missing, foreign or named twice."""
    raws = [find_raw_file(spec) for spec in settings.files]
    jobs = tuple(Job(raw, part) for raw in raws for part in source.identify(raw))
    owners: dict[str, Job] = {}
    for job in jobs:
        other = owners.setdefault(job.part.stem, job)
        if other is not job:
            raise SettingsError(
                f"data.files: {other.raw.spec} and {job.raw.spec} would both make {job.part.stem}.h5: "
                "rename one of them"
            )
    return jobs
