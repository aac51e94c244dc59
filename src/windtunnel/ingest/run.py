"""The stage: raw files to shards, a quarantine and a manifest, over as many ranks as there are."""

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from windtunnel.comm.base import run_on_root
from windtunnel.comm.counter import CountingComm, share_work
from windtunnel.ingest.partition import estimate_bytes, estimate_left_s
from windtunnel.ingest.plan import find_source, plan_jobs
from windtunnel.ingest.publish import publish_dataset
from windtunnel.ingest.receipt import Receipt
from windtunnel.ingest.survey import Survey, survey_file
from windtunnel.ingest.work import Task, make_pieces
from windtunnel.records.data import ShardManifest
from windtunnel.settings.data import DataSettings
from windtunnel.units import format_seconds


def run_ingest(settings: DataSettings, *, out: Path, comm: CountingComm) -> ShardManifest:
    """Read every file of `settings` into shards beside `out`, then publish the manifest at `out`.

    Shards that are still right are kept. Shards and manifest do not depend on the number of ranks.
    """
    source = find_source(settings)
    folder = out.parent
    jobs = run_on_root(comm, lambda: plan_jobs(settings, source))
    files = [list(group) for _, group in groupby(jobs, key=lambda job: job.raw)]
    surveyed = share_work(comm, files, lambda _, file: survey_file(file, settings, folder=folder, ranks=comm.size))
    surveys = [survey for file in surveyed for survey in file]
    tasks = list_tasks(surveys)
    started = time.monotonic()

    def work(place: int, task: Task) -> list[Receipt]:
        receipts = make_pieces(surveys[task.job].job, task.run, settings, source=source, folder=folder)
        _tell_progress(tasks, place, time.monotonic() - started)
        return receipts

    made = share_work(comm, tasks, work)
    receipts = join_receipts(surveys, tasks, made)
    return run_on_root(comm, lambda: publish_dataset(settings, surveys, receipts, out))


def list_tasks(surveys: Sequence[Survey]) -> tuple[Task, ...]:
    """Every run that is to be done, the largest first, so that the last ones are small."""
    tasks = [
        Task(
            number,
            run,
            estimate_bytes(survey.job.raw.bytes, survey.job.part.member.bytes, share=1 / len(survey.runs)),
        )
        for number, survey in enumerate(surveys)
        for run in survey.runs
    ]
    return tuple(sorted(tasks, key=lambda task: (-task.bytes, task.job, task.run.first)))


def join_receipts(
    surveys: Sequence[Survey], tasks: Sequence[Task], made: Sequence[list[Receipt]]
) -> tuple[tuple[Receipt, ...], ...]:
    """The receipts of each job in order of its pieces; raises InputFileError for a file of which no row was kept."""
    by_job: list[dict[int, Receipt]] = [{receipt.piece: receipt for receipt in survey.kept} for survey in surveys]
    for task, receipts in zip(tasks, made, strict=True):
        by_job[task.job] |= {receipt.piece: receipt for receipt in receipts}
    return tuple(tuple(receipt for _, receipt in sorted(found.items())) for found in by_job)


def _tell_progress(tasks: Sequence[Task], place: int, elapsed_s: float) -> None:
    # What was taken before is done or nearly so: nobody has to be asked.
    done, total = (sum(task.bytes for task in some) for some in (tasks[: place + 1], tasks))
    left_s = estimate_left_s(elapsed_s, done=done, total=total)
    if left_s and done < total:
        print(f"ingest: {100 * done // total} % done, about {format_seconds(left_s)} left", flush=True)
