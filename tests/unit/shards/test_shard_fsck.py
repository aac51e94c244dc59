"""What `fsck shards` finds, and what it makes again."""

import json
import os
import random
import subprocess
import sys

import pytest

from windtunnel.cli.main import main
from windtunnel.comm.single import SingleComm
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.ingest.run import run_ingest
from windtunnel.settings.data import DataSettings
from windtunnel.shards.fsck import check_dataset, find_manifests
from windtunnel.shards.manifest import read_manifest

MS = 1_650_000_000_000


@pytest.fixture
def dataset(tmp_path):
    """Four shards of two files, a quarantine and a manifest."""
    raw = tmp_path / "raw"
    raw.mkdir()
    rows = "".join(f"{MS + i},{i % 13}.25,{i % 7}\n" for i in range(400))
    for name in ("a", "b"):
        (raw / f"{name}.csv").write_text(f"ts,price,size\n{rows}oops,1,2\n")
    settings = DataSettings(
        dataset="d",
        source="delimited",
        files=(str(raw / "a.csv"), str(raw / "b.csv")),
        chunk_rows=64,
        shard_text=5000,
    )
    path = tmp_path / "shards/d/MANIFEST.json"
    run_ingest(settings, out=path, comm=SingleComm())
    return path


def read_folder(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}


def flip(path, at, bit=0):
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(bytes(data))


def test_a_whole_dataset_is_whole_and_its_store_finds_it(dataset, tmp_path, capsys):
    found = check_dataset(dataset)
    assert (found.shards, found.rows, found.damages, found.leftovers) == (4, 800, (), ())
    assert find_manifests(tmp_path) == find_manifests(dataset.parent) == [dataset]
    assert main(["fsck", "shards", str(tmp_path)]) == 0
    assert "4 shards, 800 rows" in capsys.readouterr().out


def test_every_planted_flip_cut_and_missing_file_is_found_and_named(dataset):
    rng = random.Random(7)
    names = [path.name for path in dataset.parent.iterdir() if path.is_file()]
    for _ in range(60):
        path = dataset.parent / rng.choice(names)
        before = path.read_bytes()
        kind = rng.choice(["flip", "cut", "missing"])
        if kind == "flip":
            flip(path, rng.randrange(len(before)), rng.randrange(8))
        elif kind == "cut":
            path.write_bytes(before[: rng.randrange(len(before))])
        else:
            path.unlink()
        assert [damage.file for damage in check_dataset(dataset).damages] == [path.name], kind
        path.write_bytes(before)
    assert check_dataset(dataset).damages == ()


def test_damage_is_told_by_the_rows_that_it_touches(dataset):
    import h5py

    shard = dataset.parent / "a.h5"
    with h5py.File(shard) as file:
        place = file["price"].id.get_chunk_info(2)
    flip(shard, place.byte_offset + 3)
    (damage,) = check_dataset(dataset).damages
    assert damage.rows == ((128, 192),)


def test_repair_makes_only_what_is_bad_and_to_the_byte(dataset, capsys):
    before = read_folder(dataset)
    stamps = {name: (dataset.parent / name).stat().st_mtime_ns for name in before}
    (dataset.parent / "a.h5").unlink()
    flip(dataset.parent / "b-00001.h5", 5000)
    assert main(["fsck", "shards", str(dataset)]) == 1
    assert main(["fsck", "shards", str(dataset), "--repair"]) == 0
    assert "(made again)" in capsys.readouterr().out
    assert read_folder(dataset) == before
    touched = {name for name in before if (dataset.parent / name).stat().st_mtime_ns != stamps[name]}
    assert touched == {"a.h5", "b-00001.h5"}


def test_a_manifest_and_a_quarantine_are_made_again_from_receipts(dataset, tmp_path):
    before, manifest = read_folder(dataset), read_manifest(dataset)
    flip(dataset.parent / "quarantine.csv", 30)
    assert main(["fsck", "shards", str(dataset), "--repair"]) == 0
    assert read_folder(dataset)["quarantine.csv"] == before["quarantine.csv"]
    (tmp_path / "data.yaml").write_text(json.dumps(dict(manifest.settings)))
    dataset.write_bytes(b"{")
    assert main(["fsck", "shards", str(dataset), "--repair"]) == 1
    assert main(["fsck", "shards", str(dataset), "--repair", "--settings", str(tmp_path / "data.yaml")]) == 0
    assert read_manifest(dataset) == manifest


def test_a_shard_whose_raw_file_changed_is_not_made_of_something_else(dataset, tmp_path, capsys):
    with (tmp_path / "raw/a.csv").open("a") as file:
        file.write(f"{MS},1,1\n")
    (dataset.parent / "a.h5").unlink()
    assert main(["fsck", "shards", str(dataset), "--repair", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert "is no longer the one that the shards are from" in told["failure"]
    assert not (dataset.parent / "a.h5").exists()


def test_leftovers_of_killed_writers_are_named_and_old_ones_go(dataset):
    for name, age_s in ((".a.h5.12ab.tmp", 7200), (".b.h5.34cd.tmp", 0)):
        path = dataset.parent / name
        path.write_bytes(b"half")
        os.utime(path, (path.stat().st_mtime - age_s,) * 2)
    assert check_dataset(dataset).leftovers == (".a.h5.12ab.tmp", ".b.h5.34cd.tmp")
    assert main(["fsck", "shards", str(dataset), "--repair"]) == 0
    assert check_dataset(dataset).leftovers == (".b.h5.34cd.tmp",)


def test_shards_without_their_manifest_are_damage_and_an_empty_place_a_mistake(dataset, tmp_path):
    dataset.unlink()
    (damage,) = check_dataset(*find_manifests(tmp_path)).damages
    assert damage.file == "MANIFEST.json"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError, match="holds no shards"):
        find_manifests(tmp_path / "empty")


def test_an_altered_manifest_is_refused_by_every_reader(dataset):
    dataset.write_bytes(dataset.read_bytes().replace(b"windtunnel", b"windtunneL", 1))
    with pytest.raises(ArtifactError, match=r"MANIFEST\.json (was altered|has schema)"):
        read_manifest(dataset)


def test_shards_are_checked_without_torch_or_mpi():
    code = "import sys, windtunnel.cli.fsck_shards; print([n for n in ('torch', 'mpi4py') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
