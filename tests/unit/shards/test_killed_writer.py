"""A writer that is killed at any moment leaves a whole shard, or nothing that a reader would take for one."""

import os
import random
import signal
import time

import h5py
import numpy as np
import pytest

from windtunnel.errors import ArtifactError
from windtunnel.shards.manifest import check_shard
from windtunnel.shards.reader import read_shard
from windtunnel.shards.writer import write_shard


def make_arrays(rows=20_000):
    rng = np.random.default_rng(3)
    return {"time_ns": np.arange(rows, dtype=np.int64), "price": rng.normal(size=rows)}


def write(folder, arrays):
    return write_shard(folder / "x.h5", arrays, instrument="x", compression="zstd", chunk_rows=1024)


def test_a_writer_killed_at_random_leaves_a_whole_shard_or_none(tmp_path):
    arrays = make_arrays()
    started = time.monotonic()
    entry = write(tmp_path / "whole", arrays)
    took_s = time.monotonic() - started
    rng = random.Random(5)
    published = 0
    for number in range(15):
        folder = tmp_path / str(number)
        folder.mkdir()
        child = os.fork()
        if child == 0:
            write(folder, arrays)
            os._exit(0)
        time.sleep(rng.uniform(0, 1.5 * took_s))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if (folder / "x.h5").exists():
            assert check_shard(folder, entry) == ""
            published += 1
        assert all(path.name.startswith(".") for path in folder.iterdir() if path.name != "x.h5")
    assert published < 15, "some were killed before the end"


def test_a_shard_without_its_last_attribute_is_no_shard(tmp_path):
    write(tmp_path, make_arrays(100))
    with h5py.File(tmp_path / "x.h5", "a") as file:
        del file.attrs["schema"]  # written last
    with pytest.raises(ArtifactError, match=r"x\.h5 has schema None"):
        read_shard(tmp_path / "x.h5")


def test_a_file_cut_at_any_length_is_refused_by_name(tmp_path):
    write(tmp_path, make_arrays(2000))
    data = (tmp_path / "x.h5").read_bytes()
    for length in range(0, len(data) - 1, max(1, len(data) // 40)):
        (tmp_path / "cut.h5").write_bytes(data[:length])
        with pytest.raises(ArtifactError, match=r"cut\.h5"):
            read_shard(tmp_path / "cut.h5")
