"""The source `delimited`: rows of fields between delimiters, with a time, in plain, gzip, zstd or zipped text."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import polars as pl

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import RawFile, read_ahead
from windtunnel.ingest.pieces import TextBlock, read_run
from windtunnel.ingest.rows import make_name, split_fields, split_lines
from windtunnel.ingest.sources.base import Batch, Part, Run, count_pieces
from windtunnel.ingest.sources.delimited_rows import parse_by_row, parse_whole
from windtunnel.ingest.sources.text_layout import BOM, TextLayout, find_layout, join_times
from windtunnel.ingest.timeforms import loses_digits
from windtunnel.ingest.unpack import Member, list_members, open_member
from windtunnel.settings.data import DataSettings

SAMPLE_BYTES = 256 << 10
_SCALED_FROM = 100_000
"""Of most prices, in whole numbers: few things cost so much and have no fraction."""
_SUFFIXES = re.compile(r"(\.(csv|txt|tsv|dat|gz|zst|zip))+$", re.IGNORECASE)


class Delimited:
    """The source `delimited`."""

    def __init__(self, settings: DataSettings) -> None:
        self._settings = settings.text
        self._piece_bytes = settings.shard_text

    def identify(self, raw: RawFile) -> tuple[Part, ...]:
        """A part for each text; the instrument is named as the file is, or as the member of several."""
        members = list_members(raw)
        if not members or all(member.bytes == 0 for member in members):
            raise InputFileError(f"data file {raw.spec} holds no text: fetch it again")
        return tuple(self._identify(raw, member, alone=len(members) == 1) for member in members)

    def read(self, raw: RawFile, part: Part, run: Run) -> Iterator[Batch]:
        """Numbers as float64, times as ns, everything else as text."""
        layout: TextLayout | None = part.detail
        if layout is None:
            return
        for block in read_ahead(read_run(raw, part.member, run, head_lines=layout.head_lines)):
            yield self._parse(block, layout)

    def _identify(self, raw: RawFile, member: Member, *, alone: bool) -> Part:
        name = raw.path.name if alone else PurePosixPath(member.name).name
        instrument = make_name(_SUFFIXES.sub("", name))
        if not instrument:
            raise InputFileError(f"data file {raw.spec} gives its instrument no name: rename it, such as acme.csv.gz")
        where = f"data file {raw.spec}" + ("" if alone else f": its member {member.name!r}")
        sample = _read_sample(raw, member)
        if not sample and not alone:
            return Part(instrument, instrument, member, notes=(f"member {member.name} is empty",))
        layout = find_layout(sample, self._settings, where=where, file_name=name)
        pieces = count_pieces(member, self._piece_bytes)
        notes = tuple(_describe_sample(sample, layout))
        return Part(instrument, instrument, member, pieces, layout.columns, notes, detail=layout)

    def _parse(self, block: TextBlock, layout: TextLayout) -> Batch:
        head = layout.head_bytes if block.is_first else 0
        text = block.text[head:]
        frame = parse_whole(text, layout, self._settings)
        if frame is not None:
            return Batch(frame, len(frame), lines=block.lines, piece=block.piece)
        first_line = block.first_line + (layout.head_lines if block.is_first else 0)
        frame, rejected, rows_in = parse_by_row(text, layout, self._settings, first_line=first_line)
        return Batch(frame, rows_in, rejected, block.lines, block.piece)


def _read_sample(raw: RawFile, member: Member) -> bytes:
    with open_member(raw, member) as stream:
        data = stream.read(SAMPLE_BYTES)
        while len(data) < SAMPLE_BYTES and (more := stream.read(SAMPLE_BYTES - len(data))):
            data += more
    whole = data.rfind(b"\n") + 1
    return data[:whole] if whole and len(data) == SAMPLE_BYTES else data


def _looks_scaled(texts: pl.Series) -> bool:
    values = texts.cast(pl.Float64, strict=False).drop_nulls()
    known = values.filter(values > 0)
    is_whole = len(known) > 0 and bool((known % 1 == 0).all())
    return is_whole and 2 * int((known >= _SCALED_FROM).sum()) > len(known)


def _describe_sample(sample: bytes, layout: TextLayout) -> Iterator[str]:
    if sample.startswith(BOM):
        yield "starts with a byte-order mark"
    if b"\r\n" in sample:
        yield "lines end in CRLF"
    if not layout.has_header:
        yield "has no header"
    rows = split_lines(sample[layout.head_bytes :])
    split, _ = split_fields(rows, layout.fields, delimiter=layout.delimiter, quotes=True)
    if layout.price_scale == 1 and any(_looks_scaled(split[name]) for name in layout.prices):
        yield "prices are large whole numbers: if they are multiplied, set data.text.price_scale, such as 10000"
    if (layout.time_form.kind, layout.time_form.unit) == ("epoch", "ns"):
        values = join_times(split, layout.times).cast(pl.Int64, strict=False).drop_nulls().to_list()
        if loses_digits(values):
            yield "times have been through float64: all are multiples of 256 ns, none is exact"
