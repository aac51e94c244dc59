"""The publishers' own files: what they say must come out as it went in."""

import numpy as np
import pytest

from read_raw import read_raw
from windtunnel.comm.single import SingleComm
from windtunnel.errors import InputFileError
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.run import run_ingest
from windtunnel.ingest.sources.lean_tick import LeanTick
from windtunnel.settings.data import DataSettings
from windtunnel.shards.reader import read_shard

SOURCE = LeanTick(DataSettings(dataset="d", source="lean_tick", files=("x",)))
ARCH = {
    "sp500": (5031, 0),
    "nasdaq": (5031, 0),
    "vix": (1305, 46),
    "wti": (8611, 290),
    "crude": (393, 0),
    "default": (1200, 0),
}


def test_the_series_in_the_arch_package_lose_no_row_and_keep_their_gaps(tmp_path):
    files = [f"package:arch/data/{name}/{name}.csv.gz" for name in ARCH]
    settings = DataSettings(dataset="d", source="daily_csv", files=files)
    manifest = run_ingest(settings, out=tmp_path / "MANIFEST.json", comm=SingleComm())
    assert manifest.quarantine == ""
    for shard in manifest.shards:
        arrays = read_shard(tmp_path / shard.file)
        gaps = sum(int(np.isnan(array).sum()) for array in arrays.values())
        assert (len(arrays["time_ns"]), gaps) == ARCH[shard.instrument]


@pytest.mark.shared
def test_aig_quotes_are_read_to_the_last_one_sided_row(shared_dir):
    raw = find_raw_file(str(shared_dir / "data/lean/equity_usa_tick_aig_20131009_quote.zip"))
    reading = read_raw(SOURCE, raw)
    arrays = reading.arrays
    assert reading.rows_in == len(arrays["time_ns"]) == 1_424_012
    assert int(np.isnan(arrays["bid_price"]).sum()) == int(np.isnan(arrays["ask_price"]).sum()) == 712_006
    assert int((np.diff(arrays["time_ns"]) == 0).sum()) == 1_078_541
    assert len(np.unique(arrays["exchange"])) == 11
    hours = (arrays["time_ns"][[0, -1]] - np.datetime64("2013-10-09", "ns").astype(np.int64)) / 3.6e12
    assert hours.astype(int).tolist() == [8, 24]  # 04:00 to 20:00 in New York


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "rows", "repeats"), [("aig_20131009", 52_008, 19_724), ("spy_20131008", 451_545, 242_738)]
)
def test_trades_are_read_with_their_repeated_time_stamps(shared_dir, name, rows, repeats):
    raw = find_raw_file(str(shared_dir / f"data/lean/equity_usa_tick_{name}_trade.zip"))
    reading = read_raw(SOURCE, raw)
    assert reading.rows_in == len(reading.arrays["price"]) == rows
    assert int((np.diff(reading.arrays["time_ns"]) == 0).sum()) == repeats
    assert np.isfinite(reading.arrays["price"]).all()


@pytest.mark.shared
@pytest.mark.parametrize(
    "name",
    [
        "cfd_oanda_tick_xauusd_20140507_quote.zip",
        "crypto_bybit_minute_btcusdt_20221213_quote.zip",
        "equity_usa_minute_spy_20230803_trade.zip",
        "forex_fxcm_tick_eurusd_20140508_quote.zip",
        "future_comex_tick_gc_20131007_trade.zip",
        "equity_usa_factor_files_aapl.csv",
    ],
)
def test_other_markets_files_are_refused_by_name(shared_dir, name):
    raw = find_raw_file(str(shared_dir / "data/lean" / name))
    with pytest.raises(InputFileError, match="lean_tick reads US equity ticks") as caught:
        SOURCE.identify(raw)
    assert name in str(caught.value)
