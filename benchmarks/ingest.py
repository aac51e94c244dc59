"""What ingest costs: a trading day of quotes, zip to published shard, against merely unpacking and parsing it."""

import contextlib
import io
import os
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from benchmarks.harness import ROOT, Part, PartResult, make_row, make_rows, run_paired
from benchmarks.ingest_fsck import run_fsck
from benchmarks.ingest_ranks import run_ranks
from windtunnel.errors import InputFileError
from windtunnel.settings.data import DataSettings

QUOTES = ROOT.parent / "shared" / "data" / "lean" / "equity_usa_tick_aig_20131009_quote.zip"
QUICK_ROWS = 50_000
ROUNDS = 15
PANDAS_ROUNDS = 7


def run_unzip_parse(quick: bool) -> PartResult:
    """Both sides in this process with one polars thread; imports are outside, and the file is in the page cache."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is first imported
    import polars

    assert polars.thread_pool_size() == 1, "polars was imported before this part: run it by itself"
    if not QUOTES.is_file():
        raise InputFileError(f"{QUOTES} does not exist: the benchmark reads the market data beside the project")
    settings = DataSettings(
        dataset="ticks", source="lean_tick", files=(str(QUOTES),), max_rows=QUICK_ROWS if quick else None
    )

    ingest = _make_ingest(settings)

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


def run_pandas(quick: bool) -> PartResult:
    """Ours against pandas on the same file: `read_csv`, then `to_hdf` in both of its formats."""
    import pandas

    rows = QUICK_ROWS // 10 if quick else None
    settings = DataSettings(dataset="ticks", source="lean_tick", files=(str(QUOTES),), max_rows=rows)

    def by_pandas(form: Literal["table", "fixed"]) -> Callable[[], float]:
        def run() -> float:
            with tempfile.TemporaryDirectory() as folder:
                started = time.perf_counter()
                frame = pandas.read_csv(QUOTES, names=[*_schema_names()], nrows=rows)
                frame.to_hdf(Path(folder) / "x.h5", key="x", format=form)
                return time.perf_counter() - started

        return run

    sides = {"ours": _make_ingest(settings), "table": by_pandas("table"), "fixed": by_pandas("fixed")}
    paired = run_paired(sides, rounds=1 if quick else PANDAS_ROUNDS)
    ratios = {f"pandas_{form}_speedup": paired.ratio(form, "ours") for form in ("table", "fixed")}
    rows_made = (*make_rows(paired), *(make_row(name, ratio, "x") for name, ratio in ratios.items()))
    return PartResult(
        {name: ratio.median for name, ratio in ratios.items()},
        {name: ratio.count for name, ratio in ratios.items()},
        rows_made,
    )


def _make_ingest(settings: DataSettings) -> Callable[[], float]:
    from windtunnel.comm.single import SingleComm
    from windtunnel.ingest.run import run_ingest

    def ingest() -> float:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            started = time.perf_counter()
            run_ingest(settings, out=Path(folder) / "MANIFEST.json", comm=SingleComm())
            return time.perf_counter() - started

    return ingest


def _schema_names() -> tuple[str, ...]:
    return ("time_ms", "bid", "bid_size", "ask", "ask_size", "exchange", "conditions", "suspicious")


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
    Part(
        name="pandas",
        figures=("pandas_table_speedup", "pandas_fixed_speedup"),
        measures=("ingest", "shards", "artifacts.py", "benchmarks/ingest.py"),
        run=run_pandas,
    ),
    Part(
        name="mpi-ranks",
        figures=("mpi_speedup",),
        measures=("ingest", "shards", "comm", "artifacts.py", "benchmarks/ingest_ranks.py"),
        run=run_ranks,
    ),
    Part(
        name="fsck",
        figures=("fsck_found_fraction",),
        measures=("ingest", "shards", "artifacts.py", "benchmarks/ingest_fsck.py"),
        run=run_fsck,
    ),
)
