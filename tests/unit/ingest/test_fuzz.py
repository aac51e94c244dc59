"""Any bytes at all: each source refuses them by name, or keeps and quarantines exactly the rows that there are."""

import gzip
import io
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from read_raw import read_raw
from windtunnel.errors import InputFileError
from windtunnel.ingest.columns import make_arrays
from windtunnel.ingest.files import find_raw_file
from windtunnel.ingest.rows import LINE, RAW
from windtunnel.ingest.sources.daily_csv import DailyCsv
from windtunnel.ingest.sources.delimited import Delimited
from windtunnel.ingest.sources.delimited_rows import parse_by_row, parse_whole
from windtunnel.ingest.sources.lean_columns import QUOTE, TRADE
from windtunnel.ingest.sources.lean_tick import LeanTick
from windtunnel.ingest.sources.text_layout import find_layout
from windtunnel.ingest.timeforms import FORMS, TimeForm
from windtunnel.ingest.timestamps import parse_times
from windtunnel.settings.data import DataSettings, TextSettings

SETTINGS = DataSettings(dataset="d", source="delimited", files=("x",))
MS = 1_650_000_000_000
FUZZ = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FIELDS = st.one_of(
    st.sampled_from(
        ["", ".", "NA", "1", "-1", "+2", "0", "1.5", " 7", "7 ", "1e5", "1e999", "inf", "nan", "0x1", "1_0"]
    ),
    st.sampled_from(
        ['"1"', '"', '1"2', "1,5", "1;2", "\u00e9", "a\tb", "-", "9223372036854775807", "99999999999999999999"]
    ),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),  # a file with a NUL is refused whole
)
TIMES = st.one_of(st.integers(MS, MS + 10**6).map(str), FIELDS)


def rows_of(*fields):
    return st.lists(st.tuples(*fields).map(",".join), max_size=12).map("\n".join)


def write(folder, data, name):
    (folder / name).write_bytes(data)
    return find_raw_file(str(folder / name))


def count_rows(text):
    """Lines that are not blank, as every one of our sources counts rows."""
    lines = text.decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    return sum(1 for line in lines if line.removesuffix("\r").strip())


@FUZZ
@given(body=rows_of(TIMES, FIELDS, FIELDS), newline=st.sampled_from(["\n", "\r\n"]))
def test_delimited_text_keeps_or_quarantines_every_row(tmp_path, body, newline):
    good = f"{MS},1,2\n" * 13  # the form of most rows is that of the file
    data = ("ts,price,note\n" + good + body).replace("\n", newline).encode()
    reading = read_raw(Delimited(SETTINGS), write(tmp_path, data, "a.csv"))
    assert reading.rows_in == count_rows(data) - 1


@FUZZ
@given(body=rows_of(TIMES, FIELDS, FIELDS))
@example(body="1650000000000, 1,x")
@example(body="1650000000000,9223372036854775807,x")
def test_whole_blocks_and_single_rows_are_read_alike(body):
    text = (f"{MS},1,a\n{MS + 1},2,b\n" + body).encode()
    layout = find_layout(b"ts,price,note\n" + text[:40], SETTINGS.text, where="a", file_name="a")
    whole = parse_whole(text, layout, SETTINGS.text)
    frame, rejected, rows_in = parse_by_row(text, layout, SETTINGS.text, first_line=1)
    assert rows_in == len(frame) + len(rejected)
    if whole is not None:
        assert len(rejected) == 0
        fast, slow = (make_arrays(each, layout.columns) for each in (whole, frame))
        assert {name: array.tobytes() for name, array in fast.items()} == {
            name: array.tobytes() for name, array in slow.items()
        }


@FUZZ
@given(body=rows_of(st.one_of(st.dates().map(str), FIELDS), FIELDS))
def test_daily_series_keep_or_quarantine_every_row(tmp_path, body):
    data = ("Date,x\n" + "".join(f"2014-01-{day:02},1\n" for day in range(1, 29)) + body).encode()
    reading = read_raw(DailyCsv(SETTINGS), write(tmp_path, data, "a.csv"))
    assert reading.rows_in == count_rows(data) - 1


@FUZZ
@given(data=st.data(), layout=st.sampled_from([QUOTE, TRADE]))
def test_ticks_keep_or_quarantine_every_row(tmp_path, data, layout):
    fields = [st.one_of(st.integers(0, 10**6).map(str), FIELDS)] * len(layout.fields)
    text = data.draw(rows_of(*fields)).encode()
    name = f"20131009_abc_{layout.kind.title()}_Tick.csv"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    reading = read_raw(LeanTick(SETTINGS), write(tmp_path, buffer.getvalue(), "a.zip"))
    assert reading.rows_in == count_rows(text)


@pytest.mark.parametrize("source", [Delimited, DailyCsv, LeanTick])
@pytest.mark.parametrize("wrap", [bytes, gzip.compress, lambda data: b"PK\x03\x04" + data])
@FUZZ
@given(data=st.binary(max_size=300))
def test_bytes_of_any_kind_are_refused_by_name_or_conserved(tmp_path, source, wrap, data):
    raw = write(tmp_path, wrap(data) or b"x", "a.dat")
    try:
        reading = read_raw(source(SETTINGS), raw)
    except InputFileError as error:
        told = str(error)
    else:
        told = "a.dat"
        assert reading.rows_in <= count_rows(data)
    assert "a.dat" in told


@FUZZ
@given(texts=st.lists(st.one_of(FIELDS, st.datetimes().map(str), st.times().map(str)), min_size=1, max_size=8))
@pytest.mark.parametrize("kind", FORMS)
def test_no_text_of_a_time_crashes_and_each_has_a_time_or_a_reason(kind, texts):
    form = TimeForm(kind, "ms", "America/New_York", "2014-05-08")
    time_ns, reasons = parse_times(pl.Series(texts), form)
    assert time_ns.dtype == np.int64
    assert len(time_ns) == len(reasons) == len(texts)
    for text, reason in zip(texts, reasons, strict=True):
        assert reason is None or text in reason


@FUZZ
@given(moment=st.datetimes(), form=st.sampled_from(["iso", "compact", "day_first", "month_first"]))
def test_dates_and_times_come_back_to_the_microsecond(moment, form):
    layouts = {
        "iso": "%Y-%m-%dT%H:%M:%S.%fZ",
        "compact": "%Y%m%d %H%M%S.%f",
        "day_first": "%d.%m.%Y %H:%M:%S.%f",
        "month_first": "%m/%d/%Y %H:%M:%S.%f",
    }
    text = moment.strftime(layouts[form]).zfill(8)
    time_ns, reasons = parse_times(pl.Series([text]), TimeForm(form, zone="UTC"))
    if 1678 <= moment.year <= 2261:
        assert reasons[0] is None
        assert time_ns[0] == np.datetime64(moment, "us").astype("datetime64[ns]").astype(np.int64)
    else:
        assert reasons[0] is not None


def test_a_layout_is_found_the_same_whoever_asks():
    sample = f"ts,price\n{MS},1\n".encode()
    one, two = (find_layout(sample, TextSettings(), where="a", file_name="a") for _ in range(2))
    assert one == two
    assert {LINE, RAW}.isdisjoint(one.fields)
