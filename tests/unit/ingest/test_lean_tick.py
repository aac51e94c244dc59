import zipfile
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from read_raw import read_raw
from windtunnel.errors import InputFileError
from windtunnel.ingest.columns import make_arrays
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.sources import lean_columns
from windtunnel.ingest.sources.lean_tick import LeanTick
from windtunnel.settings.data import DataSettings

SOURCE = LeanTick(DataSettings(dataset="d", source="lean_tick", files=("x",)))
QUOTES = "20131009_abc_Quote_Tick.csv"
TRADES = "20131009_abc_Trade_Tick.csv"
QUOTE_ROWS = "14400521,475000,200,0,0,P,1,0\n14400521,0,0,484800,3000,P,1,0\n72000149,475100,100,484700,200,Q,800,1"


def pack(tmp_path, members, name="ticks.zip"):
    with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return find_raw_file(str(tmp_path / name))


def read(tmp_path, text, member=QUOTES, max_rows=None):
    return read_raw(SOURCE, pack(tmp_path, {member: text}), max_rows=max_rows)


def test_time_is_new_york_wall_clock_of_the_named_date(tmp_path):
    summer = read(tmp_path, QUOTE_ROWS).arrays["time_ns"]
    assert summer[0] == int(datetime(2013, 10, 9, 8, 0, 0, tzinfo=UTC).timestamp()) * 10**9 + 521_000_000
    winter = read(tmp_path, QUOTE_ROWS, "20131211_abc_Quote_Tick.csv").arrays["time_ns"]
    assert winter[0] == int(datetime(2013, 12, 11, 9, 0, 0, tzinfo=UTC).timestamp()) * 10**9 + 521_000_000


def test_prices_are_scaled_and_an_absent_side_is_nan(tmp_path):
    arrays = read(tmp_path, QUOTE_ROWS).arrays
    assert np.array_equal(arrays["bid_price"], [47.5, np.nan, 47.51], equal_nan=True)
    assert np.array_equal(arrays["ask_price"], [np.nan, 48.48, 48.47], equal_nan=True)
    assert arrays["bid_size"].tolist() == [200, 0, 100]
    assert arrays["ask_size"].dtype == np.int32


def test_codes_flags_and_doubts_are_kept(tmp_path):
    arrays = read(tmp_path, QUOTE_ROWS).arrays
    assert arrays["exchange"].tolist() == [b"P", b"P", b"Q"]
    assert arrays["condition"].tolist() == [1, 1, 0x800]
    assert arrays["suspicious"].tolist() == [0, 0, 1]


def test_columns_say_what_the_arrays_are(tmp_path):
    for member, text in ((QUOTES, QUOTE_ROWS), (TRADES, "26759879,479900,100,P,2000,0\n")):
        reading = read(tmp_path, text, member)
        assert {c.name: c.dtype for c in reading.columns} == {
            name: "S8" if array.dtype.kind == "S" else str(array.dtype) for name, array in reading.arrays.items()
        }
        assert list(reading.arrays) == [column.name for column in reading.columns]


def test_trades_are_read(tmp_path):
    reading = read(tmp_path, "26759879,479900,100,P,2000,0\n27384272,481000,277500,D,20100200,0\n", TRADES)
    assert reading.arrays["price"].tolist() == [47.99, 48.1]
    assert reading.arrays["size"].tolist() == [100, 277500]
    assert reading.arrays["condition"].tolist() == [0x2000, 0x20100200]


def test_duplicates_are_kept_in_the_files_order(tmp_path):
    text = "100,10000,1,D,0,0\n100,10000,1,D,0,0\n100,20000,2,D,0,0\n50,30000,3,D,0,0\n"
    reading = read(tmp_path, text, TRADES)
    assert reading.rows_in == 4
    assert reading.arrays["price"].tolist() == [3.0, 1.0, 1.0, 2.0]
    assert np.all(np.diff(reading.arrays["time_ns"]) >= 0)


def test_fractions_of_a_millisecond_are_kept_to_the_ns(tmp_path):
    whole = read(tmp_path, "86399205,10000,1,D,0,0\n", TRADES).arrays["time_ns"][0]
    assert read(tmp_path, "86399205.351,10000,1,D,0,0\n", TRADES).arrays["time_ns"][0] == whole + 351_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("27759879,479900,100,P,2000", "5 fields, expected 6"),
        ("27759879,479900,100,P,2000,0,0", "7 fields, expected 6"),
        ("x,479900,100,P,2000,0", "ms is not a number: x"),
        ("86400000,479900,100,P,2000,0", "ms is 86400000.0, expected 0 or more and less than 8.64e+07"),
        ("-1,479900,100,P,2000,0", "ms is -1.0, expected 0 or more and less than 8.64e+07"),
        ("27759879,,100,P,2000,0", "price is not a number: "),
        ("27759879,nan,100,P,2000,0", "price is not a number: nan"),
        ("27759879,0,100,P,2000,0", "price is 0.0, expected 0.0001 or more and less than 1e+14"),
        ("27759879,479900,1.5,P,2000,0", "size is not a whole number: 1.5"),
        ("27759879,479900,99999999999999999999,P,2000,0", "size is not a whole number: 99999999999999999999"),
        ("27759879,479900,-5,P,2000,0", "size is -5, expected 0 or more and less than 2.14748e+09"),
        (
            "27759879,479900,100,A VERY LONG NAME,2000,0",
            "exchange is not a code of up to 8 characters: A VERY LONG NAME",
        ),
        ("27759879,479900,100,P,xyz,0", "condition is not hexadecimal of up to 8 digits: xyz"),
        ("27759879,479900,100,P,2000,2", "suspicious is 2, expected 0 or more and less than 2"),
    ],
)
def test_a_row_that_does_not_fit_is_rejected_and_moves_no_other(tmp_path, line, reason):
    reading = read(tmp_path, f"26759879,479900,100,P,2000,0\n{line}\n28759879,481000,200,Q,,0", TRADES)
    assert reading.reasons == [(2, reason, line)]
    assert reading.rows_in == 3
    assert reading.arrays["price"].tolist() == [47.99, 48.1]
    assert reading.arrays["condition"].tolist() == [0x2000, 0]


def test_blank_lines_a_mark_and_crlf_are_no_rows(tmp_path):
    text = "\ufeff" + QUOTE_ROWS.replace("\n", "\r\n") + "\r\n\r\n"
    reading = read(tmp_path, text)
    assert reading.rows_in == 3
    assert len(reading.rejected) == 0


def test_a_bad_row_far_into_a_long_file_is_told_by_its_line_and_costs_no_other(tmp_path):
    good = [f"{number},10000,{number},D,0,0" for number in range(400_000)]
    bad = 350_000
    text = "\n".join([*good[:bad], "oops,1", *good[bad:]])
    reading = read(tmp_path, text, TRADES)
    assert reading.reasons == [(bad + 1, "2 fields, expected 6", "oops,1")]
    assert np.array_equal(reading.arrays["size"], np.arange(400_000))


@pytest.mark.parametrize(("kind", "seed"), [("quote", 1), ("trade", 2)])
def test_reading_whole_and_by_row_agree(kind, seed):
    layout = {"quote": lean_columns.QUOTE, "trade": lean_columns.TRADE}[kind]
    rng = np.random.default_rng(seed)
    rows = 500
    numbers = {name: rng.integers(1, 10**6, rows) for name in (*layout.prices, *layout.sizes, "ms")}
    codes = {"exchange": rng.choice(["P", "Q", "NSDQ"], rows), "condition": rng.choice(["1", "8a", "20000020"], rows)}
    fields = {**numbers, **codes, "suspicious": rng.integers(0, 2, rows)}
    text = pl.DataFrame({name: fields[name] for name in layout.fields}).write_csv(include_header=False).encode()
    whole = lean_columns._parse_whole(text, layout)
    by_row = lean_columns._parse_by_row(text, layout, 1)
    assert whole is not None
    assert by_row.rows_in == len(whole) == rows
    frames = (lean_columns.make_frame(frame, layout, midnight_ns=0) for frame in (whole, by_row.frame))
    fast, slow = (make_arrays(frame, layout.columns) for frame in frames)
    for name, array in fast.items():
        assert array.dtype == slow[name].dtype
        assert array.tobytes() == slow[name].tobytes()


def test_at_most_max_rows_rows_are_read(tmp_path):
    assert read(tmp_path, QUOTE_ROWS, max_rows=2).rows_in == 2


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"20140508_eurusd_tick_quote.csv": "1,2,3\n"}, "lean_tick reads US equity ticks"),
        ({"20230803_spy_minute_trade.csv": "1,2,3,4,5,6\n"}, "lean_tick reads US equity ticks"),
        ({"20131007_gc_tick_trade_201310.csv": "1\n", "20131007_gc_tick_trade_201311.csv": "1\n"}, "holds 2 files"),
        ({QUOTES: "1", TRADES: "1"}, "holds 2 files"),
        ({}, "holds 0 files"),
        ({"20131309_abc_Quote_Tick.csv": "1"}, "20131309, which does not exist"),
    ],
)
def test_other_kinds_of_zip_are_refused_by_name_before_a_row_is_read(tmp_path, members, message):
    with pytest.raises(InputFileError, match=message) as caught:
        SOURCE.identify(pack(tmp_path, members))
    assert "ticks.zip" in str(caught.value)


@pytest.mark.parametrize("name", ["20131008_quote.zip", "equity_usa_tick_abc_20131009_trade.zip"])
def test_a_zip_that_contradicts_its_member_is_refused(tmp_path, name):
    with pytest.raises(InputFileError, match="contradicts its own name"):
        SOURCE.identify(pack(tmp_path, {QUOTES: QUOTE_ROWS}, name))


def test_another_countrys_market_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="market 'india'"):
        SOURCE.identify(pack(tmp_path, {QUOTES: QUOTE_ROWS}, "equity_india_tick_abc_20131009_quote.zip"))
    assert SOURCE.identify(pack(tmp_path, {QUOTES: ""}, "equity_usa_tick_abc_20131009_quote.zip"))[0].instrument


def test_instrument_and_shard_are_named_by_symbol_kind_and_date(tmp_path):
    (identity,) = SOURCE.identify(pack(tmp_path, {"20131009_BRK.A_Trade_Tick.csv": "1"}))
    assert (identity.instrument, identity.stem) == ("brk_a_trade", "brk_a_trade_20131009")


def test_a_day_on_which_clocks_change_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="2013-11-03, when clocks change"):
        read(tmp_path, QUOTE_ROWS, "20131103_abc_Quote_Tick.csv")


def test_a_file_that_is_no_zip_and_a_damaged_one_are_refused(tmp_path):
    (tmp_path / "a.zip").write_text("14400521,475000\n")
    with pytest.raises(InputFileError, match=r"a\.zip is named \.zip but is not zip"):
        SOURCE.identify(find_raw_file(str(tmp_path / "a.zip")))
    raw = pack(tmp_path, {QUOTES: QUOTE_ROWS * 200})
    data = bytearray(raw.path.read_bytes())
    data[120] ^= 0xFF
    raw.path.write_bytes(bytes(data))
    with pytest.raises(InputFileError, match=r"ticks\.zip is (a damaged zip|damaged or cut off)"):
        read_raw(SOURCE, raw)
