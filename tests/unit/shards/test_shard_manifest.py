import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from windtunnel.artifacts import write_artifact
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.data import Column, InputFile, ShardManifest
from windtunnel.shards.manifest import check_shard, manifest_sha256, read_manifest
from windtunnel.shards.writer import write_shard


def publish(folder):
    arrays = {"time_ns": np.arange(50), "price": np.arange(50.0)}
    shard = write_shard(folder / "x.h5", arrays, instrument="x", compression="lz4", chunk_rows=16)
    source = InputFile("x.csv", 10, "aa", 50, 50, 0)
    columns = (Column("time_ns", "int64", "ns"), Column("price", "float64", "USD"))
    manifest = ShardManifest("raw", "d", "daily_csv", columns, (shard,), (source,), "")
    write_artifact(folder / "MANIFEST.json", manifest)
    return manifest


def test_a_manifest_is_read_back(tmp_path):
    assert publish(tmp_path) == read_manifest(tmp_path / "MANIFEST.json")


def test_a_whole_shard_passes(tmp_path):
    (shard,) = publish(tmp_path).shards
    assert check_shard(tmp_path, shard) == ""


def test_a_flipped_byte_a_cut_and_a_missing_file_are_each_told(tmp_path):
    (shard,) = publish(tmp_path).shards
    path = tmp_path / "x.h5"
    data = path.read_bytes()
    path.write_bytes(bytes([data[0], data[1] ^ 1]) + data[2:])
    assert "has SHA-256" in check_shard(tmp_path, shard)
    path.write_bytes(data[:-1])
    assert f"has {len(data) - 1} bytes, its manifest says {len(data)}" in check_shard(tmp_path, shard)
    path.unlink()
    assert check_shard(tmp_path, shard) == f"{path} is missing"


def test_the_content_hash_does_not_depend_on_where_raw_files_lay_or_when(tmp_path):
    manifest = publish(tmp_path)
    elsewhere = dataclasses.replace(manifest.inputs[0], path="/other/x.csv")
    changed = dataclasses.replace(manifest.inputs[0], sha256="bb")
    assert manifest_sha256(dataclasses.replace(manifest, inputs=(elsewhere,))) == manifest_sha256(manifest)
    assert manifest_sha256(dataclasses.replace(manifest, inputs=(changed,))) != manifest_sha256(manifest)


def test_a_missing_or_foreign_manifest_is_refused_by_name(tmp_path):
    with pytest.raises(InputFileError, match=r"MANIFEST\.json does not exist"):
        read_manifest(tmp_path / "MANIFEST.json")
    (tmp_path / "MANIFEST.json").write_text('{"schema": "other/1"}')
    with pytest.raises(ArtifactError, match=r"other/1"):
        read_manifest(tmp_path / "MANIFEST.json")


def test_a_manifest_is_read_without_torch_mpi_or_hdf5():
    code = (
        "import sys, windtunnel.shards.manifest; "
        "print([name for name in ('torch', 'mpi4py', 'h5py') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
