"""Files of several pieces and several texts: the shards are the same whoever reads what, and nothing is lost."""

import csv
import gzip
import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from windtunnel.comm.single import SingleComm
from windtunnel.errors import InputFileError
from windtunnel.ingest.files import check_unchanged, find_raw_file, read_pieces
from windtunnel.ingest.partition import estimate_left_s, list_runs
from windtunnel.ingest.run import run_ingest
from windtunnel.settings.data import DataSettings
from windtunnel.shards.reader import read_shard

MS = 1_650_000_000_000
ROWS = [f"{MS + i},{i}.5,{i % 7}" for i in range(1000)]
BAD = {100: "oops,1,2", 555: f"{MS},1", 999: f"{MS},x,3"}
LINES = ["ts,price,size", *(BAD.get(i, row) for i, row in enumerate(ROWS))]
TEXT = "\n".join(LINES)


def make_settings(*files, **more):
    return DataSettings(dataset="d", source="delimited", files=[str(file) for file in files], chunk_rows=64, **more)


def ingest(settings, folder, comm=None):
    return run_ingest(settings, out=folder / "MANIFEST.json", comm=comm or SingleComm())


def write(path, text=TEXT):
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.csv", data)
        data = buffer.getvalue()
    path.write_bytes(data)
    return path


def read_all(folder, manifest):
    parts = [read_shard(folder / shard.file) for shard in manifest.shards]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip"])
def test_a_long_file_makes_several_shards_that_are_together_its_rows(tmp_path, name):
    path = write(tmp_path / name)
    manifest = ingest(make_settings(path, shard_text=2000), tmp_path / "out")
    assert [shard.file for shard in manifest.shards][:2] == ["a.h5", "a-00001.h5"]
    assert len(manifest.shards) == -(-len(TEXT) // 2000)
    arrays = read_all(tmp_path / "out", manifest)
    assert arrays["price"].tolist() == [i + 0.5 for i in range(1000) if i not in BAD]
    (found,) = manifest.inputs
    assert (found.rows_in, found.rows_kept, found.rows_quarantined) == (1000, 997, 3)


def test_quarantined_rows_of_later_pieces_are_told_by_their_line_in_the_file(tmp_path):
    manifest = ingest(make_settings(write(tmp_path / "a.csv"), shard_text=2000), tmp_path / "out")
    with (tmp_path / "out" / manifest.quarantine).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["line"]) for row in rows] == [number + 2 for number in BAD]
    assert [row["raw"] for row in rows] == list(BAD.values())


class AsOneOf(SingleComm):
    """Plans as one of several ranks does, and does the work of all."""

    size = 3


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip"])
def test_shards_do_not_depend_on_how_a_file_is_split_over_ranks(tmp_path, name):
    settings = make_settings(write(tmp_path / name), shard_text=2000)
    one, three = ingest(settings, tmp_path / "one"), ingest(settings, tmp_path / "three", AsOneOf())
    assert one.shards == three.shards
    assert one.inputs == three.inputs
    for shard in one.shards:
        assert (tmp_path / "one" / shard.file).read_bytes() == (tmp_path / "three" / shard.file).read_bytes()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip"])
def test_only_a_shard_that_is_bad_or_gone_is_made_again(tmp_path, name):
    settings = make_settings(write(tmp_path / name), shard_text=2000)
    first = ingest(settings, tmp_path / "out")
    stamps = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.h5")}
    (tmp_path / "out/a-00003.h5").unlink()
    (tmp_path / "out/a-00005.h5").write_bytes(b"x")
    assert ingest(settings, tmp_path / "out").shards == first.shards
    changed = {path.name for path in (tmp_path / "out").glob("*.h5") if path.stat().st_mtime_ns != stamps[path.name]}
    assert changed == {"a-00003.h5", "a-00005.h5"}


def test_a_new_days_file_adds_shards_and_rewrites_none(tmp_path):
    one, two = write(tmp_path / "d1.csv"), write(tmp_path / "d2.csv")
    first = ingest(make_settings(one), tmp_path / "out")
    stamp = (tmp_path / "out/d1.h5").stat().st_mtime_ns
    second = ingest(make_settings(one, two), tmp_path / "out")
    assert second.shards[0] == first.shards[0]
    assert [shard.file for shard in second.shards] == ["d1.h5", "d2.h5"]
    assert (tmp_path / "out/d1.h5").stat().st_mtime_ns == stamp


def test_at_most_max_rows_are_read_over_pieces_too(tmp_path):
    settings = make_settings(write(tmp_path / "a.csv"), shard_text=2000, max_rows=300)
    manifest = ingest(settings, tmp_path / "out")
    assert manifest.inputs[0].rows_in == 300
    assert len(manifest.shards) > 1
    assert ingest(settings, tmp_path / "out") == manifest


def test_every_member_of_a_zip_is_conserved_and_an_empty_one_costs_nothing(tmp_path):
    with zipfile.ZipFile(tmp_path / "gc.zip", "w") as archive:
        archive.writestr("gc_201312.csv", TEXT)
        archive.writestr("gc_201402.csv", f"ts,price,size\n{MS},1,2\n")
        archive.writestr("gc_201404.csv", "")
    manifest = ingest(make_settings(tmp_path / "gc.zip"), tmp_path / "out")
    assert [(shard.instrument, shard.rows) for shard in manifest.shards] == [("gc_201312", 997), ("gc_201402", 1)]
    (found,) = manifest.inputs
    assert (found.rows_in, found.rows_kept, found.rows_quarantined) == (1001, 998, 3)
    assert found.notes == ("member gc_201404.csv is empty",)


def test_flags_are_counted_in_the_manifest_and_stand_beside_each_row(tmp_path):
    path = write(tmp_path / "a.csv", f"ts,price,size\n{MS + 1},1,1\n{MS},100,1\n")
    manifest = ingest(make_settings(path), tmp_path / "out")
    assert manifest.inputs[0].flagged == {"out_of_order": 1, "jump": 1}
    assert read_shard(tmp_path / "out/a.h5")["flags"].tolist() == [16 | 32, 0]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    raw = find_raw_file(str(write(tmp_path / "a.csv")))
    check_unchanged(raw)
    write(tmp_path / "a.csv", TEXT + "\n")
    with pytest.raises(InputFileError, match="changed while it was read"):
        check_unchanged(raw)


def test_the_manifest_tells_how_its_shards_are_made_again(tmp_path):
    settings = make_settings(write(tmp_path / "a.csv"))
    manifest = ingest(settings, tmp_path / "out")
    assert DataSettings.model_validate(manifest.settings) == settings
    text = json.loads((tmp_path / "out/MANIFEST.json").read_text())
    assert text["content"]["sha256"] == manifest.sha256 != ""


def test_pieces_are_whole_lines_each_in_the_piece_where_it_begins():
    rng = random.Random(1)
    for _ in range(300):
        data = bytes(rng.choice(b"ab\n") for _ in range(rng.randrange(60)))
        piece_bytes, block_bytes = rng.randrange(1, 12), rng.randrange(1, 15)
        first, count = rng.randrange(4), rng.choice([1, 2, 99])
        wanted: dict[int, bytes] = {}
        at = 0
        for line in data.splitlines(keepends=True):
            piece = at // piece_bytes
            if first <= piece < first + count:
                wanted[piece] = wanted.get(piece, b"") + line
            at += len(line)
        found: dict[int, bytes] = {}
        for stream in (io.BytesIO(data), io.BufferedReader(io.BytesIO(data))):
            found.clear()
            for piece, block in read_pieces(
                stream, piece_bytes, first=first, end=first + count, block_bytes=block_bytes
            ):
                found[piece] = found.get(piece, b"") + block
            assert found == wanted


@pytest.mark.parametrize(("ranks", "sizes"), [(1, [3, 2]), (2, [2, 1, 1, 1]), (9, [1] * 5)])
def test_runs_of_packed_text_are_no_more_than_ranks(ranks, sizes):
    runs = list(list_runs([0, 1, 2, 7, 8], ranks=ranks, is_seekable=False))
    assert [end - first for first, end in runs] == sizes
    assert [piece for first, end in runs for piece in range(first, end)] == [0, 1, 2, 7, 8]


def test_the_time_left_follows_the_pace_so_far():
    assert estimate_left_s(10.0, done=25, total=100) == 30.0
    assert estimate_left_s(10.0, done=0, total=100) is None


def test_a_line_that_never_ends_is_refused_before_it_fills_memory(tmp_path):
    class Endless(io.RawIOBase):
        def read(self, size=-1, /):
            return b"x" * 8_000_000

    with pytest.raises(EOFError, match="a line has more than"):
        list(read_pieces(Endless(), 1 << 30))


def test_nothing_is_left_beside_the_shards(tmp_path):
    manifest = ingest(make_settings(write(tmp_path / "a.csv"), shard_text=4000), tmp_path / "out")
    names = {path.name for path in Path(tmp_path / "out").iterdir()}
    assert names == {*(shard.file for shard in manifest.shards), "MANIFEST.json", "quarantine.csv", ".receipts"}
