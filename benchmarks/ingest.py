"""What ingest costs: a trading day of quotes, zip to published shard, against merely unpacking and parsing it."""

import contextlib
import io
import os
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Part, PartResult, make_row, make_rows, run_paired
from windtunnel.errors import InputFileError
from windtunnel.settings.data import DataSettings

QUOTES = ROOT.parent / "shared" / "data" / "lean" / "equity_usa_tick_aig_20131009_quote.zip"
QUICK_ROWS = 50_000
ROUNDS = 15


def run_unzip_parse(quick: bool) -> PartResult:
    """Both sides in this process with one polars thread; imports are outside, and the file is in the page cache."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is first imported
    import polars

    from windtunnel.comm.single import SingleComm
    from windtunnel.ingest.run import run_ingest

    assert polars.thread_pool_size() == 1, "polars was imported before this part: run it by itself"
    if not QUOTES.is_file():
        raise InputFileError(f"{QUOTES} does not exist: the benchmark reads the market data beside the project")
    settings = DataSettings(
        dataset="ticks", source="lean_tick", files=(str(QUOTES),), max_rows=QUICK_ROWS if quick else None
    )

    def ingest() -> float:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            started = time.perf_counter()
            run_ingest(settings, out=Path(folder) / "MANIFEST.json", comm=SingleComm())
            return time.perf_counter() - started

    def unzip_and_parse() -> float:
        started = time.perf_counter()
        with zipfile.ZipFile(QUOTES) as archive:
            text = archive.read(archive.namelist()[0])
        polars.read_csv(text, has_header=False, schema=_schema(polars), n_rows=settings.max_rows)
        return time.perf_counter() - started

    paired = run_paired(
        {"zip to published shard": ingest, "unzip and parse": unzip_and_parse}, rounds=2 if quick else ROUNDS
    )
    ratio = paired.ratio("zip to published shard", "unzip and parse")
    rows = (*make_rows(paired), make_row("unzip_parse_ratio", ratio, "x"))
    return PartResult({"unzip_parse_ratio": ratio.median}, {"unzip_parse_ratio": ratio.count}, rows)


def _schema(polars: Any) -> dict[str, Any]:
    numbers = ("time_ms", "bid", "bid_size", "ask", "ask_size")
    words = ("exchange", "conditions")
    return {**dict.fromkeys(numbers, polars.Int64), **dict.fromkeys(words, polars.String), "suspicious": polars.Int64}


PARTS = (
    Part(
        name="unzip-parse",
        figures=("unzip_parse_ratio",),
        measures=("ingest", "shards", "artifacts.py", "benchmarks/ingest.py"),
        run=run_unzip_parse,
    ),
)
