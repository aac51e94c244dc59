import csv
import dataclasses
import json
import os

import polars as pl
import pytest

from windtunnel.comm.single import SingleComm
from windtunnel.errors import InputFileError, LostRowsError, SettingsError
from windtunnel.ingest.columns import PieceRows
from windtunnel.ingest.rows import no_rejected
from windtunnel.ingest.run import run_ingest
from windtunnel.ingest.work import check_rows
from windtunnel.settings.data import DataSettings
from windtunnel.shards.manifest import check_shard, manifest_sha256, read_manifest
from windtunnel.shards.reader import read_shard


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "one.csv").write_text("Date,Close\n1/2/2014,1\n1/3/2014,oops\n1/6/2014,3\n")
    (folder / "two.csv").write_text("Date,vix\n2014-01-02,10\n2014-01-03,.\n")
    return folder


def make_settings(raw, *names, **more):
    files = [str(raw / name) for name in (names or ("one.csv", "two.csv"))]
    return DataSettings(dataset="d", source="daily_csv", files=files, **more)


def ingest(settings, folder):
    return run_ingest(settings, out=folder / "MANIFEST.json", comm=SingleComm())


def test_files_become_shards_a_quarantine_and_a_manifest(tmp_path, raw):
    manifest = ingest(make_settings(raw), tmp_path / "out")
    assert read_manifest(tmp_path / "out/MANIFEST.json") == manifest
    assert [check_shard(tmp_path / "out", shard) for shard in manifest.shards] == ["", ""]
    assert [(shard.file, shard.instrument, shard.rows) for shard in manifest.shards] == [
        ("one.h5", "one", 2),
        ("two.h5", "two", 2),
    ]
    assert [column.name for column in manifest.columns] == ["time_ns", "close", "vix", "flags"]
    assert [(i.rows_in, i.rows_kept, i.rows_quarantined) for i in manifest.inputs] == [(3, 2, 1), (2, 2, 0)]
    assert read_shard(tmp_path / "out/one.h5")["close"].tolist() == [1, 3]


def test_the_quarantine_says_file_line_reason_and_text(tmp_path, raw):
    manifest = ingest(make_settings(raw), tmp_path / "out")
    with (tmp_path / "out" / manifest.quarantine).open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["file", "member", "line", "reason", "raw"],
            [str(raw / "one.csv"), "", "3", "close is not a number: oops", "1/3/2014,oops"],
        ]


def test_a_quarantine_that_is_no_longer_true_goes(tmp_path, raw):
    ingest(make_settings(raw), tmp_path / "out")
    (raw / "one.csv").write_text("Date,Close\n1/2/2014,1\n")
    assert ingest(make_settings(raw), tmp_path / "out").quarantine == ""
    assert not (tmp_path / "out/quarantine.csv").exists()


def test_a_second_run_keeps_shards_and_says_the_same(tmp_path, raw, capsys):
    first = ingest(make_settings(raw), tmp_path / "out")
    quarantine = (tmp_path / "out/quarantine.csv").read_bytes()
    stamps = [(tmp_path / "out" / shard.file).stat().st_mtime_ns for shard in first.shards]
    for name in ("MANIFEST.json", "quarantine.csv"):
        (tmp_path / "out" / name).unlink()  # as Snakemake does with a rule's outputs
    assert ingest(make_settings(raw), tmp_path / "out") == first
    assert [(tmp_path / "out" / shard.file).stat().st_mtime_ns for shard in first.shards] == stamps
    assert (tmp_path / "out/quarantine.csv").read_bytes() == quarantine
    assert "one.h5 is still right, kept" in capsys.readouterr().out


def test_a_damaged_shard_is_made_again_with_the_same_bytes(tmp_path, raw):
    first = ingest(make_settings(raw), tmp_path / "out")
    path = tmp_path / "out/one.h5"
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert ingest(make_settings(raw), tmp_path / "out") == first
    assert path.read_bytes() == good


def test_a_changed_file_or_setting_makes_its_shard_again(tmp_path, raw, capsys):
    first = ingest(make_settings(raw), tmp_path / "out")
    (raw / "two.csv").write_text("Date,vix\n2014-01-02,11\n2014-01-03,.\n")
    second = ingest(make_settings(raw), tmp_path / "out")
    assert "two.csv is not the file that two.h5 was made of: it is read again" in capsys.readouterr().out
    assert second.shards[0] == first.shards[0]
    assert second.shards[1].sha256 != first.shards[1].sha256
    third = ingest(make_settings(raw, max_rows=1), tmp_path / "out")
    assert [item.rows_in for item in third.inputs] == [1, 1]
    assert ingest(make_settings(raw, compression="lz4"), tmp_path / "out").shards[0].sha256 != first.shards[0].sha256


def test_a_torn_receipt_only_costs_its_shard_another_making(tmp_path, raw):
    first = ingest(make_settings(raw), tmp_path / "out")
    (tmp_path / "out/.receipts/one.json").write_text("{")
    assert ingest(make_settings(raw), tmp_path / "out") == first


def test_moved_raw_files_keep_their_shards_and_the_manifests_hash(tmp_path, raw):
    first = ingest(make_settings(raw), tmp_path / "out")
    stamp = (tmp_path / "out/one.h5").stat().st_mtime_ns
    second = ingest(make_settings(raw.rename(tmp_path / "moved")), tmp_path / "out")
    assert (tmp_path / "out/one.h5").stat().st_mtime_ns == stamp
    assert second.inputs[0].path == str(tmp_path / "moved/one.csv")
    assert str(tmp_path / "moved/one.csv") in (tmp_path / "out/quarantine.csv").read_text()
    assert manifest_sha256(second) == manifest_sha256(first)


def test_a_bad_file_among_good_ones_publishes_no_manifest(tmp_path, raw):
    (raw / "bad.csv").write_text("Date,x\n192607,1\n")
    with pytest.raises(InputFileError, match=r"bad\.csv has no date"):
        ingest(make_settings(raw, "one.csv", "bad.csv"), tmp_path / "out")
    assert not (tmp_path / "out/MANIFEST.json").exists()


def test_a_missing_file_is_told_before_any_is_read(tmp_path, raw):
    with pytest.raises(InputFileError, match=r"gone\.csv does not exist"):
        ingest(make_settings(raw, "one.csv", "gone.csv"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_whose_name_is_no_text_is_refused_before_any_is_read(tmp_path, raw):
    name = os.fsdecode(b"x\xff.csv")
    (raw / name).write_text("Date,x\n2020-01-01,1\n")
    with pytest.raises(InputFileError, match=r"has bytes in its name that are no printable text: rename it"):
        ingest(make_settings(raw, name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_source_and_a_file_named_twice_are_refused(tmp_path, raw):
    with pytest.raises(
        SettingsError, match=r"data\.source is 'parquet', expected one of daily_csv, lean_tick, delimited"
    ):
        ingest(make_settings(raw).model_copy(update={"source": "parquet"}), tmp_path / "out")
    with pytest.raises(SettingsError, match=r"would both make one\.h5"):
        ingest(make_settings(raw, "one.csv", "one.csv"), tmp_path / "out")


def test_a_file_whose_rows_all_fail_is_refused_with_the_first_reason(tmp_path, raw):
    (raw / "bad.csv").write_text("Date;x\n1/2/2014;1,5\n1/3/2014;2,5\n")
    with pytest.raises(InputFileError, match=r"none of its 2 rows fits \(line 2: x is not a number: 1,5\)"):
        ingest(make_settings(raw, "bad.csv"), tmp_path / "out")


def test_a_lost_row_stops_the_stage():
    reading = PieceRows(4, 6, 6, no_rejected(), {})
    with pytest.raises(LostRowsError, match="has 6 rows, but 4 were kept and 0 quarantined"):
        check_rows("a.csv", reading)
    two = pl.DataFrame({"#line": [1, 2], "#reason": ["r", "r"], "#raw": ["", ""]})
    check_rows("a.csv", dataclasses.replace(reading, rejected=two))


def test_the_manifest_is_stamped_with_its_settings(tmp_path, raw):
    ingest(make_settings(raw), tmp_path / "out")
    document = json.loads((tmp_path / "out/MANIFEST.json").read_text())
    assert document["schema"] == "windtunnel.shards/2"
    assert len(document["settings_hash"]) == 64
