"""Delimited text: each defect of real files in a small one of our own, and what becomes of it."""

import gzip
import io
import zipfile

import numpy as np
import pytest
import zstandard

from read_raw import read_raw
from windtunnel.errors import InputFileError
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.sources.delimited import Delimited
from windtunnel.settings.data import DataSettings, TextSettings

HEAD = "ts,price,size\n"
MS = 1_650_000_000_000
ROWS = f"{MS},10.5,1\n{MS + 1},10.25,2\n{MS + 2},10,3\n"


def make_source(**text):
    return Delimited(
        DataSettings(dataset="d", source="delimited", files=("x",), text=TextSettings.model_validate(text))
    )


def write(tmp_path, data, name="a.csv"):
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return find_raw_file(str(tmp_path / name))


def read(tmp_path, data, name="a.csv", max_rows=None, **text):
    return read_raw(make_source(**text), write(tmp_path, data, name), max_rows=max_rows)


def pack(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            # Without the moment: the bytes are parts of tests' names.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def ns(text):
    return int(np.datetime64(text, "ns").astype(np.int64))


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("a.csv", bytes),
        ("a.csv.gz", lambda text: gzip.compress(text[:20]) + gzip.compress(text[20:])),
        ("a.csv.zst", lambda text: zstandard.compress(text[:20]) + zstandard.compress(text[20:])),
        ("a.zip", lambda text: pack({"inner.csv": text})),
    ],
)
def test_plain_gzip_zstd_and_zip_are_read_alike(tmp_path, name, wrap):
    reading = read(tmp_path, wrap((HEAD + ROWS).encode()), name)
    assert reading.arrays["time_ns"].tolist() == [(MS + step) * 10**6 for step in range(3)]
    assert reading.arrays["price"].tolist() == [10.5, 10.25, 10]
    assert reading.arrays["size"].tolist() == [1, 2, 3]
    assert reading.rows_in == 3


def test_a_mark_crlf_and_a_missing_last_newline_change_nothing(tmp_path):
    dressed = b"\xef\xbb\xbf" + (HEAD + ROWS).rstrip("\n").replace("\n", "\r\n").encode()
    reading = read(tmp_path, dressed)
    assert [column.name for column in reading.columns] == ["time_ns", "price", "size"]
    assert reading.arrays["size"].tolist() == [1, 2, 3]
    assert reading.notes == ("starts with a byte-order mark", "lines end in CRLF")


def test_a_file_without_a_header_is_refused_until_its_columns_are_named(tmp_path):
    with pytest.raises(InputFileError, match=r"a\.csv has no header: .* name its 3 fields in data\.text\.columns"):
        read(tmp_path, ROWS)
    reading = read(tmp_path, ROWS, columns=["ts", "price", "size"])
    assert reading.rows_in == 3
    assert reading.notes == ("has no header",)


def test_rows_of_more_fields_than_the_header_names_are_refused_not_shifted(tmp_path):
    text = "ts,a,b,c,d,e,f\n" + "".join(f"{MS + i},1,2,3,4,5,6,7\n" for i in range(20))
    with pytest.raises(InputFileError, match="8 fields, expected 7 as in its header"):
        read(tmp_path, text)


def test_a_single_row_of_another_count_is_quarantined_and_moves_no_other(tmp_path):
    reading = read(tmp_path, HEAD + f"{MS},10.5,1\n{MS + 1},10.25\n{MS + 2},10,3,4\n{MS + 3},9,5\n")
    assert [row[:2] for row in reading.reasons] == [(3, "2 fields, expected 3"), (4, "4 fields, expected 3")]
    assert reading.arrays["size"].tolist() == [1, 5]


def test_points_words_and_blanks_for_a_missing_number_are_nan_in_a_kept_row(tmp_path):
    reading = read(tmp_path, HEAD + f"{MS},.,1\n{MS + 1},NA,2\n{MS + 2},,3\n{MS + 3},9.5,-\n")
    assert np.isnan(reading.arrays["price"]).tolist() == [True, True, True, False]
    assert reading.rows_in == 4
    assert not reading.reasons


def test_whole_numbers_that_become_fractions_far_into_a_file_stay_exact(tmp_path):
    rows = "".join(f"{MS + i},{i if i < 5000 else i + 0.25},1\n" for i in range(6000))
    reading = read(tmp_path, HEAD + rows)
    assert reading.arrays["price"][[4999, 5000, 5999]].tolist() == [4999, 5000.25, 5999.25]
    assert not reading.reasons


def test_thousands_separators_are_quarantined_until_told(tmp_path):
    text = HEAD + f'{MS},"1,234.5",1\n{MS + 1},999.5,2\n{MS + 2},7,3\n'
    reading = read(tmp_path, text)
    assert reading.reasons == [(2, "price is not a number: 1,234.5", f'{MS},"1,234.5",1')]
    told = read(tmp_path, text, thousands=",")
    assert told.arrays["price"].tolist() == [1234.5, 999.5, 7]


def test_decimal_commas_are_quarantined_until_told(tmp_path):
    text = f"ts;price\n{MS};1.234,5\n{MS + 1};7,25\n{MS + 2};8\n"
    assert read(tmp_path, text, decimal=",", thousands=".").arrays["price"].tolist() == [1234.5, 7.25, 8]
    assert [row[0] for row in read(tmp_path, text).reasons] == [2, 3]


@pytest.mark.parametrize(
    ("stamps", "times"),
    [
        (["13/01/2017 22:00:00", "01/02/2017 00:00:01"], ["2017-01-13T22:00:00", "2017-02-01T00:00:01"]),
        (["01.02.2017 22:00:00.125 GMT"], ["2017-02-01T22:00:00.125"]),
        (["1/13/2017 9:30", "2/1/2017 9:30"], ["2017-01-13T09:30:00", "2017-02-01T09:30:00"]),
        (["2017-01-13T22:00:00.123456789Z"], ["2017-01-13T22:00:00.123456789"]),
        (["2022-06-06 09:00:00+01:00", "2022-11-06 09:00:00+00:00"], ["2022-06-06T08:00:00", "2022-11-06T09:00:00"]),
        (["20170113 220000"], ["2017-01-13T22:00:00"]),
        (["1919-01-02", "1969-12-31"], ["1919-01-02", "1969-12-31"]),
    ],
)
def test_forms_of_time_become_the_same_ns(tmp_path, stamps, times):
    text = "time,price\n" + "".join(f"{stamp},1\n" for stamp in stamps)
    reading = read(tmp_path, text, zone="UTC")
    assert reading.arrays["time_ns"].tolist() == [ns(time) for time in times]
    assert reading.arrays["time_ns"].dtype == np.int64


def test_dates_that_do_not_tell_day_from_month_are_refused_until_told(tmp_path):
    text = "date,price\n1/2/2017,1\n3/4/2017,2\n"
    with pytest.raises(InputFileError, match=r"whether day or month comes first.* data\.text\.time_form"):
        read(tmp_path, text)
    assert read(tmp_path, text, time_form="day_first").arrays["time_ns"][0] == ns("2017-02-01")
    with pytest.raises(InputFileError, match="some of each"):
        read(tmp_path, "date,price\n13/2/2017,1\n3/14/2017,2\n")


def test_wall_clocks_without_a_zone_are_refused_until_told(tmp_path):
    text = "time,price\n2022-06-06 09:30:00,1\n"
    with pytest.raises(InputFileError, match=r"name no zone .* set data\.text\.zone"):
        read(tmp_path, text)
    assert read(tmp_path, text, zone="America/New_York").arrays["time_ns"][0] == ns("2022-06-06T13:30")
    assert read(tmp_path, text, zone="-05:00").arrays["time_ns"][0] == ns("2022-06-06T14:30")
    with pytest.raises(InputFileError, match=r"data\.text\.zone='Mars'"):
        read(tmp_path, text, zone="Mars")


def test_times_that_clocks_skip_or_repeat_are_quarantined(tmp_path):
    text = "time,price\n2013-03-10 01:59:59,1\n2013-03-10 02:30:00,2\n2013-11-03 01:30:00,3\n2013-11-03 02:00:00,4\n"
    reading = read(tmp_path, text, zone="America/New_York")
    assert [row[1] for row in reading.reasons] == [
        "time is skipped by the clocks of America/New_York: 2013-03-10 02:30:00",
        "time comes twice by the clocks of America/New_York: 2013-11-03 01:30:00",
    ]
    assert len(read(tmp_path, text, zone="-05:00").arrays["time_ns"]) == 4


def test_a_time_of_day_takes_its_date_from_the_files_name(tmp_path):
    text = "time,price\n09:30:00.5,1\n16:00:00,2\n"
    reading = read(tmp_path, text, "trades_2014-05-08.csv", zone="America/New_York")
    assert reading.arrays["time_ns"].tolist() == [ns("2014-05-08T13:30:00.5"), ns("2014-05-08T20:00")]
    with pytest.raises(InputFileError, match=r"times of day but no date in its name 'a\.csv'"):
        read(tmp_path, text, zone="UTC")


def test_milliseconds_since_midnight_keep_their_fraction(tmp_path):
    text = "ms,price\n6.949,1\n86399999,2\n86400000,3\n"
    told = {"time": ["ms"], "time_form": "since_midnight", "time_unit": "ms", "zone": "-05:00"}
    reading = read(tmp_path, text, "20140508_quote.csv", **told)
    assert reading.arrays["time_ns"][0] == ns("2014-05-08T05:00") + 6_949_000
    assert [row[0] for row in reading.reasons] == [4]


@pytest.mark.parametrize(("unit", "digits"), [("s", 0), ("ms", 3), ("us", 6), ("ns", 9)])
def test_the_unit_of_an_epoch_is_told_by_its_size_for_a_whole_file(tmp_path, unit, digits):
    second = 1_700_000_000
    stamps = [second * 10**digits, (second + 1) * 10**digits]
    other = second * 10 ** (3 if digits == 0 else 0)
    reading = read(tmp_path, f"ts,price\n{stamps[0]},1\n{other},2\n{stamps[1]},3\n")
    assert reading.arrays["time_ns"].tolist() == [second * 10**9, (second + 1) * 10**9]
    assert [row[1] for row in reading.reasons] == [f"time is not in {unit} since 1970, as the file's others: {other}"]


def test_fractions_of_an_epoch_are_exact_to_the_ns_and_finer_ones_quarantined(tmp_path):
    reading = read(tmp_path, "ts,price\n1700000000.123456789,1\n1700000001.5,2\n1700000002.1234567891,3\n")
    assert reading.arrays["time_ns"].tolist() == [1_700_000_000_123_456_789, 1_700_000_001_500_000_000]
    assert [row[1] for row in reading.reasons] == ["time is finer than 1 ns: 1700000002.1234567891"]


def test_times_that_went_through_float64_are_noted_and_powers_of_ten_refused(tmp_path):
    rows = "".join(f"{int(float(1_700_000_000_000_000_123 + 1_234_567 * i))},1\n" for i in range(40))
    assert "through float64" in " ".join(read(tmp_path, "ts,price\n" + rows).notes)
    exact = "".join(f"{1_700_000_000_000_000_123 + 1_234_567 * i},1\n" for i in range(40))
    assert not read(tmp_path, "ts,price\n" + exact).notes
    with pytest.raises(InputFileError, match="no time of a known form"):
        read(tmp_path, "ts,price\n1.7E+12,1\n1.7E+12,2\n")


def test_rows_out_of_order_and_repeated_are_all_kept_and_flagged(tmp_path):
    reading = read(tmp_path, HEAD + f"{MS + 5},1,1\n{MS},2,2\n{MS},2,2\n{MS},3,2\n")
    assert reading.arrays["price"].tolist() == [2, 2, 3, 1]
    assert reading.flagged == {"out_of_order": 1, "repeated": 1}


def test_odd_quotes_are_kept_and_flagged(tmp_path):
    rows = ["10,1,11,1", "11,1,11,1", "12,1,11,1", "0,0,11,1", "10,1,,", "0,0,0,0", "10,0,11,1"]
    text = "ts,bid,bid_size,ask,ask_size\n" + "".join(f"{MS + i},{row}\n" for i, row in enumerate(rows))
    reading = read(tmp_path, text)
    assert reading.flagged == {"one_sided": 2, "locked": 1, "crossed": 1, "zero": 2}
    assert len(reading.arrays["bid"]) == len(rows)


def test_jumps_of_a_hundred_are_flagged_there_and_back_and_prices_stay(tmp_path):
    prices = [100, 101, 10_050, 10_060, 100.5, 100]
    reading = read(tmp_path, HEAD + "".join(f"{MS + i},{price},1\n" for i, price in enumerate(prices)))
    assert reading.flagged == {"jump": 2}
    assert reading.arrays["price"].tolist() == prices


def test_undefined_prices_are_nan_and_flagged(tmp_path):
    undefined = ["9223372036854775807", "9223372036.854775807", "1.7976931348623157e308"]
    text = HEAD + "".join(f"{MS + i},{price},1\n" for i, price in enumerate(["10", *undefined, "11"]))
    reading = read(tmp_path, text)
    assert np.isnan(reading.arrays["price"]).tolist() == [False, True, True, True, False]
    assert reading.flagged == {"undefined": 3}


def test_scaled_prices_are_divided_and_other_numbers_are_not(tmp_path):
    reading = read(tmp_path, HEAD + f"{MS},475000,100\n{MS + 1},484700,200\n", price_scale=10_000)
    assert reading.arrays["price"].tolist() == [47.5, 48.47]
    assert reading.arrays["size"].tolist() == [100, 200]


def test_prices_that_look_scaled_are_noted_until_told(tmp_path):
    text = HEAD + f"{MS},475000,100\n{MS + 1},484700,200\n"
    assert "data.text.price_scale" in " ".join(read(tmp_path, text).notes)
    assert not read(tmp_path, text, price_scale=10_000).notes
    assert not read(tmp_path, HEAD + f"{MS},475,100\n").notes


def test_event_time_receive_time_and_sequence_are_all_kept(tmp_path):
    text = f"ts_event,ts_recv,sequence,price\n{MS},{MS + 2},7,1\n{MS + 1},{MS},{2**62},2\n"
    reading = read(tmp_path, text)
    assert reading.arrays["time_ns"].tolist() == [MS * 10**6, (MS + 1) * 10**6]
    assert reading.arrays["ts_recv"].tolist() == [(MS + 2) * 10**6, MS * 10**6]
    assert reading.arrays["sequence"].tolist() == [7, 2**62]
    assert reading.flagged == {"received_before": 1}


def test_text_columns_keep_their_bytes_and_bytes_that_are_no_text_are_quarantined(tmp_path):
    reading = read(
        tmp_path, f"ts,side,price\n{MS},buy,1\n{MS + 1},sell \n".encode() + f"{MS + 2},s".encode() + b"\xff,2\n"
    )
    assert reading.arrays["side"].tolist() == [b"buy"]
    assert [row[0] for row in reading.reasons] == [3, 4]


def test_other_names_are_given_to_columns(tmp_path):
    reading = read(tmp_path, f"ts,b,a\n{MS},1,2\n", names={"b": "bid_price", "a": "ask_price"})
    assert [column.name for column in reading.columns] == ["time_ns", "bid_price", "ask_price"]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (gzip.compress((HEAD + ROWS * 999).encode(), mtime=0)[:-20], "a.csv.gz", "damaged or cut off"),
        (zstandard.compress((HEAD + ROWS * 999).encode())[:-9], "a.csv.zst", "damaged or cut off"),
        (pack({"../../a.csv": HEAD + ROWS}), "a.zip", "leads out of its folder"),
        (pack({"C:\\a.csv": HEAD + ROWS}), "a.zip", "leads out of its folder"),
        (pack({}), "a.zip", "holds no text"),
        (pack({"a.csv": b""}), "a.zip", "holds no text"),
        (gzip.compress(b"", mtime=0), "a.csv.gz", "holds no text"),
        (HEAD, "a.csv", "has a header but no rows"),
        ((HEAD + ROWS).encode("utf-16"), "a.csv", "is not UTF-8 text"),
        ("price\n1\n", "a.csv", "expected fields with one of"),
        ("a,b\n1,2\n", "a.csv", r"no column of times by name \(a, b\): set data\.text\.time"),
        ("ts,a,A\n1,2,3\n", "a.csv", "expected names, each once"),
        (f"ts,time_ns,a\n{MS},2,3\n", "a.csv", "has a column 'time_ns' beside the one that becomes it"),
        ("month,a\n192607,1\n", "a.csv", "no column of times by name"),
    ],
)
def test_what_cannot_be_read_safely_is_refused_by_name(tmp_path, data, name, message):
    with pytest.raises(InputFileError, match=message) as caught:
        read(tmp_path, data, name)
    assert name in str(caught.value)


def test_a_member_that_fills_memory_is_refused_before_it_is_unpacked(tmp_path):
    with pytest.raises(InputFileError, match=r"unpacks to 80,000,000 bytes .* expected at most 300 times"):
        read(tmp_path, pack({"a.csv": bytes(80_000_000)}), "a.zip")


def test_each_member_of_a_zip_is_a_part_of_its_own_and_empty_ones_are_noted(tmp_path):
    members = {"gc_201312.csv": HEAD + ROWS, "gc_201402.csv": HEAD + f"{MS},5,5\n", "gc_201404.csv": ""}
    parts = make_source().identify(write(tmp_path, pack(members), "gc.zip"))
    assert [part.instrument for part in parts] == ["gc_201312", "gc_201402", "gc_201404"]
    assert parts[2].notes == ("member gc_201404.csv is empty",)
