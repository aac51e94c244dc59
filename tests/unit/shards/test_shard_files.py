"""Writer and reader of shards."""

import h5py
import numpy as np
import pytest

from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.shards.reader import read_shard
from windtunnel.shards.writer import write_shard


def make_arrays(rows=1000):
    rng = np.random.default_rng(3)
    return {
        "time_ns": np.arange(rows, dtype=np.int64) * 10**9,
        "price": rng.normal(size=rows),
        "features": rng.normal(size=(rows, 3)).astype(np.float32),
        "exchange": np.array([b"P", b"NSDQ"] * (rows // 2), dtype="S8"),
    }


def write(path, arrays=None, compression="zstd", chunk_rows=256):
    return write_shard(path, arrays or make_arrays(), instrument="x", compression=compression, chunk_rows=chunk_rows)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_what_is_written_is_read_back_to_the_bit(tmp_path, compression):
    arrays = make_arrays()
    entry = write(tmp_path / "x.h5", arrays, compression)
    found = read_shard(tmp_path / "x.h5")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
    assert (entry.file, entry.rows, entry.first_ns, entry.last_ns) == ("x.h5", 1000, 0, 999 * 10**9)


def test_nan_survives(tmp_path):
    arrays = {"time_ns": np.arange(2), "price": np.array([1.5, np.nan])}
    write(tmp_path / "x.h5", arrays)
    assert np.isnan(read_shard(tmp_path / "x.h5")["price"]).tolist() == [False, True]


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_the_same_arrays_give_the_same_bytes(tmp_path, compression):
    first = write(tmp_path / "a/x.h5", compression=compression)
    second = write(tmp_path / "b/x.h5", compression=compression)
    assert first == second
    assert (tmp_path / "a/x.h5").read_bytes() == (tmp_path / "b/x.h5").read_bytes()


def test_columns_are_compressed_and_checked(tmp_path):
    write(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["features"].chunks == (256, 3)
        assert file["price"].fletcher32
        assert file["price"].shuffle


def test_only_asked_columns_are_read(tmp_path):
    write(tmp_path / "x.h5")
    assert list(read_shard(tmp_path / "x.h5", ["price", "time_ns"])) == ["price", "time_ns"]


def test_nothing_half_written_is_left(tmp_path):
    with pytest.raises(AssertionError, match="decreases"):
        write(tmp_path / "x.h5", {"time_ns": np.array([2, 1])})
    with pytest.raises(AssertionError, match="differ in length"):
        write(tmp_path / "x.h5", {"time_ns": np.arange(2), "price": np.arange(3.0)})
    write(tmp_path / "x.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["x.h5"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"file/x\.h5 cannot be written"):
        write(tmp_path / "file" / "x.h5")


def test_a_missing_shard_is_named(tmp_path):
    with pytest.raises(InputFileError, match=r"x\.h5 does not exist"):
        read_shard(tmp_path / "x.h5")


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    write(tmp_path / "x.h5")
    with pytest.raises(ArtifactError, match=r"has no column bid; it has exchange, features, price, time_ns"):
        read_shard(tmp_path / "x.h5", ["bid"])


def test_a_foreign_file_is_refused_by_name(tmp_path):
    (tmp_path / "text.h5").write_text("Date,Close\n")
    with pytest.raises(ArtifactError, match=r"text\.h5 is damaged or no HDF5 file"):
        read_shard(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1]
    with pytest.raises(ArtifactError, match=r"other\.h5 has schema None"):
        read_shard(tmp_path / "other.h5")


def test_a_cut_shard_is_refused_by_name(tmp_path):
    path = tmp_path / "x.h5"
    write(path)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ArtifactError, match=r"x\.h5 is damaged"):
        read_shard(path)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_one_flipped_byte_in_a_column_is_refused_by_name(tmp_path, compression):
    path = tmp_path / "x.h5"
    write(path, compression=compression)
    with h5py.File(path) as file:
        place = file["price"].id.get_chunk_info(1)
    data = bytearray(path.read_bytes())
    data[place.byte_offset + place.size // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArtifactError, match=r"x\.h5 is damaged"):
        read_shard(path)
