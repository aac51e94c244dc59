"""A small dataset of three shards, two instruments and two compressions, as the loader's tests read it."""

import numpy as np

from windtunnel.records.data import ShardManifest
from windtunnel.shards.manifest import write_manifest
from windtunnel.shards.windows import Field
from windtunnel.shards.writer import write_shard

FIELDS = (Field("features", -7, 1), Field("price", 0, 4))
SHARDS = (
    ("s0.h5", "acme", 700, 0, "zstd"),
    ("s1.h5", "globex", 333, 5, "lz4"),
    ("s2.h5", "acme", 250, 70_000, "lz4"),
)


def write_dataset(folder, *, chunk_rows=64):
    """Its manifest; rows are 100 ns apart, and a later shard of `acme` follows the first."""
    rng = np.random.default_rng(1)
    entries = []
    for file, instrument, rows, first_ns, compression in SHARDS:
        arrays = {
            "time_ns": first_ns + 100 * np.arange(rows, dtype=np.int64),
            "price": rng.random(rows),
            "features": (rng.integers(-50, 50, (rows, 5)) / 8).astype(np.float32),
        }
        path = folder / file
        entries.append(
            write_shard(path, arrays, instrument=instrument, compression=compression, chunk_rows=chunk_rows)
        )
    manifest = ShardManifest("features", "d", "daily", (), tuple(entries), (), "")
    write_manifest(folder / "MANIFEST.json", manifest)
    return folder / "MANIFEST.json"
