"""What is there already: the receipts of each text's pieces that are still right, and the pieces to be read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from windtunnel.ingest.files import hash_raw_file
from windtunnel.ingest.partition import list_runs
from windtunnel.ingest.receipt import Receipt, is_right, make_key, read_receipt, was_of_another_file
from windtunnel.ingest.sources.base import Run
from windtunnel.ingest.work import Job
from windtunnel.settings.data import DataSettings


@dataclass(frozen=True)
class Survey:
    """One text: the job with its hashes, what is kept of it, and the runs that are to be done."""

    job: Job
    kept: tuple[Receipt, ...]
    runs: tuple[Run, ...]


def survey_file(jobs: Sequence[Job], settings: DataSettings, *, folder: Path, ranks: int) -> list[Survey]:
    """Hash a raw file, and verify every shard that was made from just these bytes, for each of its texts."""
    sha256 = hash_raw_file(jobs[0].raw)
    return [_survey(job, settings, sha256, folder=folder, ranks=ranks) for job in jobs]


def _survey(job: Job, settings: DataSettings, sha256: str, *, folder: Path, ranks: int) -> Survey:
    stem = job.part.stem
    key = make_key(settings, stem=stem, member=job.part.member.name, input_sha256=sha256)
    known = replace(job, sha256=sha256, key=key)
    if was_of_another_file(folder, stem, input_sha256=sha256):
        print(f"ingest: {job.raw.spec} is not the file that {stem}.h5 was made of: it is read again", flush=True)
    found = _read_receipts(folder, known, is_open=settings.max_rows is not None)
    right = {piece: receipt for piece, receipt in found.items() if is_right(folder, receipt)}
    if settings.max_rows is not None:  # rows are counted from the beginning
        whole = len(right) == len(found) and any(receipt.is_last for receipt in right.values())
        run = Run(piece_bytes=settings.shard_text, max_rows=settings.max_rows)
        return Survey(known, tuple(right.values()), ()) if whole else Survey(known, (), (run,))
    spans = _list_missing(known, found, right, ranks=ranks)
    runs = tuple(Run(first, end, settings.shard_text) for first, end in spans)
    return Survey(known, tuple(receipt for _, receipt in sorted(right.items())), runs)


def _read_receipts(folder: Path, job: Job, *, is_open: bool) -> dict[int, Receipt]:
    """By piece; of a text whose size is not known, as far as they follow each other."""
    found: dict[int, Receipt] = {}
    count = None if is_open else job.part.pieces
    piece = 0
    while count is None or piece < count:
        receipt = read_receipt(folder, job.part.stem, piece, key=job.key)
        if receipt is not None:
            found[piece] = receipt
        if count is None and (receipt is None or receipt.is_last):
            break
        piece += 1
    return found


def _list_missing(
    job: Job, found: dict[int, Receipt], right: dict[int, Receipt], *, ranks: int
) -> list[tuple[int, int | None]]:
    count = job.part.pieces
    is_complete = count is not None or any(receipt.is_last for receipt in found.values())
    known = range(count if count is not None else len(found))
    missing = [piece for piece in known if piece not in right]
    spans: list[tuple[int, int | None]] = list(
        list_runs(missing, ranks=ranks, is_seekable=job.part.member.packing == "plain")
    )
    return spans if is_complete else [*spans, (len(found), None)]
