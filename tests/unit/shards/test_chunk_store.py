import dataclasses
import os

import numpy as np
import pytest

from window_shards import write_dataset
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.shards.dataset import open_dataset
from windtunnel.shards.groups import find_groups
from windtunnel.shards.manifest import read_manifest
from windtunnel.shards.reader import read_shard
from windtunnel.shards.windows import join_series
from windtunnel.shards.writer import write_shard


@pytest.mark.parametrize("chunk_rows", [1, 64, 333, 4096])
@pytest.mark.parametrize("column", ["time_ns", "price", "features"])
def test_rows_are_those_that_hdf5_itself_reads(tmp_path, chunk_rows, column):
    dataset = open_dataset(write_dataset(tmp_path, chunk_rows=chunk_rows), ["price", "features"])
    wanted = np.concatenate([read_shard(tmp_path / file)[column] for file in ("s0.h5", "s2.h5", "s1.h5")])
    found = dataset.store.load(column, threads=3)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "S3", "S16"])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_items_of_every_size_are_read_whether_they_compress_or_not(tmp_path, compression, dtype):
    noise = np.random.default_rng(0).integers(1, 255, (1000, 16), dtype=np.uint8)
    values = np.ascontiguousarray(noise[:, : np.dtype(dtype).itemsize]).view(dtype)[:, 0]
    values[:500] = values[0]
    arrays = {"time_ns": np.arange(1000, dtype=np.int64), "x": values}
    entry = write_shard(tmp_path / "a.h5", arrays, instrument="a", compression=compression, chunk_rows=100)
    manifest = write_dataset(tmp_path)
    alone = dataclasses.replace(read_manifest(manifest), shards=(entry,))
    from windtunnel.shards.manifest import write_manifest

    write_manifest(manifest, alone)
    assert open_dataset(manifest, ["x"]).store.load("x", threads=2).tobytes() == values.tobytes()


def test_a_flipped_byte_is_refused_with_the_shard_and_its_rows(tmp_path):
    manifest = write_dataset(tmp_path)
    path = tmp_path / "s1.h5"
    chunk = next(chunk for chunk in find_groups(path).chunks[2] if chunk.column == "features")
    data = bytearray(path.read_bytes())
    data[chunk.at + chunk.bytes // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=r"s1\.h5: features from row 128 on was altered: check it with"):
        open_dataset(manifest, ["features"]).store.load("features", threads=2)


def test_a_shard_that_is_missing_or_cut_is_named(tmp_path):
    dataset = open_dataset(write_dataset(tmp_path), ["features"])
    os.truncate(tmp_path / "s2.h5", 2000)
    with pytest.raises(ArtifactError, match=r"s2\.h5 has 2000 bytes, its manifest says"):
        dataset.store.load("features", threads=1)
    (tmp_path / "s2.h5").unlink()
    with pytest.raises(InputFileError, match=r"s2\.h5 is missing: run the stage"):
        dataset.store.load("features", threads=1)
    with pytest.raises(InputFileError, match=r"s2\.h5 is missing: run the stage"):
        open_dataset(tmp_path / "MANIFEST.json", ["features"])


def test_unpacking_alone_finds_what_reading_finds(tmp_path):
    dataset = open_dataset(write_dataset(tmp_path), ["features"])
    dataset.store.unpack("features", threads=2)
    path = tmp_path / "s0.h5"
    chunk = next(chunk for chunk in find_groups(path).chunks[0] if chunk.column == "features")
    data = bytearray(path.read_bytes())
    data[chunk.at] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=r"s0\.h5: features from row 0 on was altered"):
        dataset.store.unpack("features", threads=2)


def test_a_forked_process_opens_shards_of_its_own(tmp_path):
    dataset = open_dataset(write_dataset(tmp_path), ["features"])
    dataset.store.load("features", threads=1)
    before = dict(dataset.store.files._open)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        dataset.store.load("features", threads=1)
        shared = set(before.values()) & set(dataset.store.files._open.values())
        os.write(writer, b"own" if not shared else b"shared")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"own"
    assert dataset.store.files._open == before


def test_shards_of_an_instrument_that_overlap_in_time_are_refused(tmp_path):
    shards = read_manifest(write_dataset(tmp_path)).shards
    late = dataclasses.replace(shards[2], first_ns=100)
    with pytest.raises(ArtifactError, match=r"s0\.h5 and s2\.h5 of 'acme' overlap in time"):
        join_series((shards[0], late))


def test_a_column_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"s0\.h5 has no column nope; it has features, price, time_ns"):
        open_dataset(write_dataset(tmp_path), ["nope"])
