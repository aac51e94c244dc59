"""All receipts of a dataset as its manifest and its quarantine, on one rank, whatever the number of ranks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from windtunnel.artifacts import hash_file, hash_json, to_plain
from windtunnel.errors import InputFileError
from windtunnel.ingest.flags import FLAGS_COLUMN, add_counts
from windtunnel.ingest.quarantine import write_quarantine
from windtunnel.ingest.receipt import Receipt
from windtunnel.ingest.survey import Survey
from windtunnel.records.data import Column, InputFile, ShardManifest
from windtunnel.settings.data import DataSettings
from windtunnel.shards.manifest import write_manifest


def publish_dataset(
    settings: DataSettings, surveys: Sequence[Survey], receipts: Sequence[Sequence[Receipt]], out: Path
) -> ShardManifest:
    """Publish the manifest at `out`, after the quarantine that it names."""
    for survey, found in zip(surveys, receipts, strict=True):
        if not survey.runs:
            rows = sum(receipt.shard.rows for receipt in found if receipt.shard)
            print(f"ingest: {survey.job.part.stem}.h5 is still right, kept ({rows:,} rows)", flush=True)
    inputs = _describe_inputs(surveys, receipts)
    quarantine = write_quarantine(out.parent, _list_quarantined(surveys, receipts))
    manifest = ShardManifest(
        kind="raw",
        dataset=settings.dataset,
        source=settings.source,
        columns=_join_columns(surveys),
        shards=tuple(receipt.shard for found in receipts for receipt in found if receipt.shard is not None),
        inputs=inputs,
        quarantine=quarantine,
        quarantine_sha256=hash_file(out.parent / quarantine) if quarantine else "",
        settings=to_plain(settings),
    )
    written = write_manifest(out, manifest, settings_hash=hash_json(settings))
    kept = sum(item.rows_kept for item in inputs)
    quarantined = sum(item.rows_quarantined for item in inputs)
    print(f"ingest: {len(inputs)} files, {kept:,} rows kept, {quarantined:,} quarantined -> {out}", flush=True)
    return written


def _describe_inputs(surveys: Sequence[Survey], receipts: Sequence[Sequence[Receipt]]) -> tuple[InputFile, ...]:
    """A record a raw file, of all its texts; raises InputFileError for one of which no row fits."""
    by_file: dict[str, list[int]] = {}
    for number, survey in enumerate(surveys):
        by_file.setdefault(survey.job.raw.spec, []).append(number)
    return tuple(
        _describe_input([surveys[number] for number in numbers], [r for number in numbers for r in receipts[number]])
        for numbers in by_file.values()
    )


def _describe_input(surveys: Sequence[Survey], receipts: Sequence[Receipt]) -> InputFile:
    raw = surveys[0].job.raw
    rows_in = sum(receipt.rows_in for receipt in receipts)
    kept = sum(receipt.shard.rows for receipt in receipts if receipt.shard is not None)
    quarantined = sum(len(receipt.quarantined) for receipt in receipts)
    if kept == 0:
        first = next((row for receipt in receipts for row in receipt.quarantined), None)
        why = f"none of its {rows_in} rows fits (line {first[0]}: {first[1]})" if first else "it holds no rows"
        raise InputFileError(f"data file {raw.spec}: {why}: check data.source, or fetch it again")
    return InputFile(
        path=raw.spec,
        bytes=raw.bytes,
        sha256=surveys[0].job.sha256,
        rows_in=rows_in,
        rows_kept=kept,
        rows_quarantined=quarantined,
        flagged=add_counts(receipt.flagged for receipt in receipts),
        notes=tuple(dict.fromkeys(note for survey in surveys for note in survey.job.part.notes)),
    )


def _list_quarantined(
    surveys: Sequence[Survey], receipts: Sequence[Sequence[Receipt]]
) -> Iterator[tuple[str, str, int, str, str]]:
    """File, member, line in the whole text, reason and raw text."""
    for survey, found in zip(surveys, receipts, strict=True):
        before = 0
        for receipt in found:
            for line, reason, raw in receipt.quarantined:
                yield survey.job.raw.spec, survey.job.part.member.name, before + line, reason, raw
            before += receipt.lines


def _join_columns(surveys: Sequence[Survey]) -> tuple[Column, ...]:
    """Every column that a shard has, in order of first appearance; a shard need not have all of them."""
    found = dict.fromkeys(column for survey in surveys for column in survey.job.part.columns)
    return (*found, FLAGS_COLUMN)
