import gzip

import numpy as np
import pytest

from read_raw import read_raw
from windtunnel.errors import InputFileError
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.sources.daily_csv import DailyCsv
from windtunnel.settings.data import DataSettings

SOURCE = DailyCsv(DataSettings(dataset="d", source="daily_csv", files=("x",)))
DAY_NS = 86_400_000_000_000


def read(tmp_path, text, name="a.csv", max_rows=None):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_raw(SOURCE, find_raw_file(str(path)), max_rows=max_rows)


def days(reading):
    return (reading.arrays["time_ns"] // DAY_NS).astype("datetime64[D]").astype(str).tolist()


def test_a_mark_crlf_and_gzip_are_read_as_plain_text_is(tmp_path):
    text = "Date,Brent,WTI\n1987-05-15,18.58,19.44\n1987-06-15,18.86,20.07\n"
    plain = read(tmp_path, text)
    dressed = read(tmp_path, gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()), "a.csv.gz")
    assert [column.name for column in dressed.columns] == ["time_ns", "brent", "wti"]
    for name, array in plain.arrays.items():
        assert array.tobytes() == dressed.arrays[name].tobytes()
    assert plain.arrays["wti"].tolist() == [19.44, 20.07]


def test_dates_are_midnight_utc_in_int64_ns_before_1970_too(tmp_path):
    reading = read(tmp_path, "Date,x\n1/2/1919,1\n12/31/1969,2\n1/1/1970,3\n")
    assert reading.arrays["time_ns"].dtype == np.int64
    assert days(reading) == ["1919-01-02", "1969-12-31", "1970-01-01"]
    assert reading.arrays["time_ns"].tolist()[1:] == [-DAY_NS, 0]


def test_a_missing_value_is_nan_in_a_kept_row(tmp_path):
    reading = read(tmp_path, "Date,a,b\n1/2/2014,.,1\n1/3/2014,,2\n1/6/2014, NA ,.\n")
    assert reading.rows_in == 3
    assert len(reading.rejected) == 0
    assert np.isnan(reading.arrays["a"]).all()
    assert reading.arrays["b"].tolist()[:2] == [1, 2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2/30/2014,1,2", "date is not M/D/YYYY, as the file's others: 2/30/2014"),
        ("2014-02-03,1,2", "date is not M/D/YYYY, as the file's others: 2014-02-03"),
        ("2/3/14,1,2", "date is not M/D/YYYY, as the file's others: 2/3/14"),
        (",1,2", "date is not M/D/YYYY, as the file's others: "),
        ("2/3/1500,1,2", "date is outside 1677 to 2262: 2/3/1500"),
        ("2/3/2014,1x,2", "a is not a number: 1x"),
        ("2/3/2014,1,inf", "b is not a number: inf"),
        ("2/3/2014,1,1e999", "b is not a number: 1e999"),
        ("2/3/2014,1_000,2", "a is not a number: 1_000"),
        ("2/3/2014,1", "2 fields, expected 3"),
        ("2/3/2014,1,2,3", "4 fields, expected 3"),
        ('2/3/2014,"1,2', "0 fields, expected 3"),
        ("1/2/2014,1,2", "date 2014-01-02 was on line 2 already"),
    ],
)
def test_a_row_that_does_not_fit_is_rejected_with_its_line_and_text(tmp_path, line, reason):
    reading = read(tmp_path, f"Date,a,b\n1/2/2014,1,2\n\n{line}\n1/6/2014,5,6\n")
    assert reading.reasons == [(4, reason, line)]
    assert days(reading) == ["2014-01-02", "2014-01-06"]
    assert reading.arrays["b"].tolist() == [2, 6]
    assert reading.rows_in == 3


def test_bytes_that_are_not_utf8_are_rejected_with_their_row(tmp_path):
    reading = read(tmp_path, b"Date,a\n1/2/2014,1\n1/3/2014,\xff2\n")
    assert [row[0] for row in reading.reasons] == [3]


def test_rows_in_any_order_become_ascending_in_time(tmp_path):
    reading = read(tmp_path, "Date,x\n2014-01-06,3\n2014-01-02,1\n2014-01-03,2\n")
    assert days(reading) == ["2014-01-02", "2014-01-03", "2014-01-06"]
    assert reading.arrays["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_seen_in_the_header(tmp_path, delimiter):
    reading = read(tmp_path, "Date,x,y\n2014-01-02,1.5,2\n".replace(",", delimiter))
    assert reading.arrays["x"].tolist() == [1.5]


def test_quoted_fields_are_read(tmp_path):
    reading = read(tmp_path, '"Date","Adj. Close"\n"2014-01-02","1.5"\n2014-01-03,2\n')
    assert reading.arrays["adj_close"].tolist() == [1.5, 2]


def test_at_most_max_rows_rows_are_read(tmp_path):
    assert read(tmp_path, "Date,x\n2014-01-02,1\n2014-01-03,2\n2014-01-06,3\n", max_rows=2).rows_in == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Date,x\n", "has a header but no rows"),
        ("\n \n", "holds no text"),
        ("hello\n1\n", "expected a header such as Date,Close"),
        ("<!DOCTYPE html>\n<p>gone</p>\n", "expected a header such as Date,Close"),
        ("1/2/2014,1\n1/3/2014,2\n", "has no header"),
        ("Date,x,X\n1/2/2014,1,2\n", "expected names, each once"),
        ("Date,,x\n1/2/2014,1,2\n", "expected names, each once"),
        ("Date,x\n192607,1\n192608,2\n", r"no date in its first column \(first: '192607'\)"),
        ("Time,x\n01.01.2017 22:00:00,1\n", "no date in its first column"),
        ("Date,x\n2022-06-06 00:00:00+01:00,1\n", "no date in its first column"),
        ("Date,x\n3/1/2014,1\n13/1/2014,2\n4/2/2014,3\n", "has the day before the month"),
        ("Date,x\n13/1/2014,1\n14/1/2014,2\n1/14/2014,3\n", "has the day before the month"),
        ("Date,x\n2014-13-01,1\n2014-02-01,2\n", "has the day before the month"),
        ("Date,x\n".encode("utf-16"), "not UTF-8 text"),
        (b"PK\x03\x04zip", "is a damaged zip"),
        (gzip.compress(b"Date,x\n2014-01-02,1\n" * 99, mtime=0)[:-12], "damaged or cut off"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(InputFileError, match=message) as caught:
        read(tmp_path, text)
    assert "a.csv" in str(caught.value)


def test_a_file_named_gz_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputFileError, match=r"named \.gz but is not gzip"):
        read(tmp_path, "Date,x\n2014-01-02,1\n", "a.csv.gz")


def test_the_instrument_is_the_files_name(tmp_path):
    (tmp_path / "S&P-500.CSV.gz").write_bytes(gzip.compress(b"Date,x\n"))
    (identity,) = SOURCE.identify(find_raw_file(str(tmp_path / "S&P-500.CSV.gz")))
    assert (identity.instrument, identity.stem) == ("s_p_500", "s_p_500")
