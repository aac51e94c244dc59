"""Series that the kernels' benchmark runs over: real quotes and trades, their logarithms, and noise."""

import io
import zipfile
from pathlib import Path

import numpy as np
import polars
from numpy.typing import NDArray

from benchmarks.harness import ROOT
from windtunnel.errors import InputFileError

LEAN = ROOT.parent / "shared" / "data" / "lean"
# Each file, and its columns of prices.
FILES = {
    "equity_usa_tick_aig_20131009_trade": (1,),
    "equity_usa_tick_aig_20131009_quote": (1, 3),
    "equity_usa_tick_spy_20131008_trade": (1,),
    "future_comex_tick_gc_20131007_trade": (1,),
    "forex_fxcm_tick_eurusd_20140508_quote": (1, 2),
    "cfd_oanda_tick_xauusd_20140507_quote": (1, 2),
}
MOST_ROWS = 100_000


def read_real_series(*, rows: int = MOST_ROWS, files: int = len(FILES)) -> dict[str, NDArray[np.float32]]:
    """Prices above zero and their logarithms as float32, by file and column; raises InputFileError without."""
    series = {}
    for name, columns in list(FILES.items())[:files]:
        for column in columns:
            prices = read_prices(LEAN / f"{name}.zip", column)[:rows]
            series[f"{name} {column}"] = prices.astype(np.float32)
            series[f"{name} {column} log"] = np.log(prices).astype(np.float32)
    return series


def read_prices(path: Path, column: int) -> NDArray[np.float64]:
    """The numbers above zero in a column of a zipped CSV without header."""
    if not path.is_file():
        raise InputFileError(f"{path} does not exist: the benchmark reads the market data beside the project")
    with zipfile.ZipFile(path) as archive:
        text = archive.read(archive.namelist()[0])
    frame = polars.read_csv(io.BytesIO(text), has_header=False, columns=[column], infer_schema_length=None)
    values = frame.to_series().cast(polars.Float64).to_numpy()
    return values[values > 0]


def make_noise(*shape: int) -> NDArray[np.float64]:
    """The same standard normal numbers each time."""
    return np.random.default_rng(0).standard_normal(shape)
