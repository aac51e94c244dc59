"""From raw text to features: how a file was cut into shards does not matter, and facts about rows are no features."""

import random

from windtunnel.comm.single import SingleComm
from windtunnel.featurize.run import run_featurize
from windtunnel.ingest.run import run_ingest
from windtunnel.settings.data import DataSettings, TextSettings
from windtunnel.settings.features import FeatureSettings
from windtunnel.shards.reader import read_shard

MS = 1_650_000_000_000
NAMES = {"bid": "bid_price", "ask": "ask_price"}


def make_rows(first_ms, count=600):
    rng = random.Random(2)
    rows = []
    for i in range(count):
        late = rng.choice([0, 0, 0, 40])  # some rows come out of order, over pieces too
        price = 100 + rng.randrange(-20, 20) / 100
        rows.append(f"{first_ms + 10 * i - late},{price},{i % 7 + 1},{price + 0.01:.2f},{i % 5 + 1},{i}")
    return "ts,bid,bid_size,ask,ask_size,sequence\n" + "\n".join(rows)


def featurize(tmp_path, name, files, **more):
    settings = DataSettings(
        dataset="d", source="delimited", files=files, text=TextSettings(names=NAMES), chunk_rows=64, **more
    )
    shards = tmp_path / name / "shards/MANIFEST.json"
    manifest = run_ingest(settings, out=shards, comm=SingleComm())
    features = FeatureSettings(
        recipe="quotes", reference=manifest.shards[0].instrument, windows=(5, 20), min_periods=5
    )
    made = run_featurize(features, shards=shards, out=tmp_path / name / "features/MANIFEST.json")
    return manifest, made, read_shard(tmp_path / name / "features" / made.shards[0].file)


def test_features_do_not_depend_on_how_a_file_was_cut_into_shards(tmp_path):
    path = tmp_path / "acme.csv"
    path.write_text(make_rows(MS))
    one, made, whole = featurize(tmp_path, "one", (str(path),))
    several, _, parts = featurize(tmp_path, "several", (str(path),), shard_text=4000)
    assert (len(one.shards), len(several.shards)) == (1, 6)
    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in parts.items()
    }
    assert not [column.name for column in made.columns if "flags" in column.name or "sequence" in column.name]
