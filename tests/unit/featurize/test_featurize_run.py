import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from windtunnel.artifacts import write_artifact
from windtunnel.errors import ArtifactError, InputFileError, SettingsError
from windtunnel.featurize.daily import DAY_NS
from windtunnel.featurize.run import run_featurize
from windtunnel.records.data import Column, ShardManifest
from windtunnel.settings.features import FeatureSettings
from windtunnel.shards.manifest import check_shard, manifest_sha256, read_manifest
from windtunnel.shards.reader import read_shard
from windtunnel.shards.writer import write_shard

Arrays = dict[str, NDArray[Any]]
DAILY = FeatureSettings(recipe="daily", reference="index", windows=(3, 10), min_periods=3)
QUOTES = FeatureSettings(recipe="quotes", reference="x_quote", windows=(4, 16), min_periods=2)


def publish_dataset(folder: Path, shards: dict[str, Arrays]) -> Path:
    entries = [
        write_shard(folder / f"{name}.h5", arrays, instrument=name, compression="zstd", chunk_rows=1024)
        for name, arrays in shards.items()
    ]
    manifest = ShardManifest("raw", "made", "test", (Column("time_ns", "int64"),), tuple(entries), (), "")
    return write_artifact(folder / "MANIFEST.json", manifest)


def make_daily(rows: int = 120) -> dict[str, Arrays]:
    random = np.random.default_rng(0)
    day = np.arange(rows, dtype=np.int64)
    close = 100 * np.exp(0.01 * random.standard_normal(rows).cumsum())
    index = {"close": close, "high": close * 1.01, "low": close * 0.99, "volume": random.uniform(1e6, 2e6, rows)}
    vix = random.uniform(10, 30, rows // 2)
    vix[5:6] = np.nan
    return {
        "index": {"time_ns": day * DAY_NS, **index},
        "vix": {"time_ns": day[1::2] * DAY_NS, "vix": vix},
    }


def make_quotes(rows: int = 300) -> dict[str, Arrays]:
    random = np.random.default_rng(0)
    mid = 47 + 0.01 * random.standard_normal(rows).cumsum()
    is_bid = np.arange(rows) % 2 == 0
    quotes = {
        "time_ns": np.sort(random.integers(0, 200, rows)) * 1_000_000,
        "bid_price": np.where(is_bid, mid - 0.01, np.nan),
        "bid_size": np.where(is_bid, random.integers(1, 9, rows), 0),
        "ask_price": np.where(is_bid, np.nan, mid + 0.01),
        "ask_size": np.where(is_bid, 0, random.integers(1, 9, rows)),
    }
    return {"x_quote": quotes}


def featurize(folder: Path, shards: dict[str, Arrays], settings: FeatureSettings) -> tuple[ShardManifest, Arrays]:
    manifest = run_featurize(
        settings, shards=publish_dataset(folder / "raw", shards), out=folder / "features" / "MANIFEST.json"
    )
    return manifest, read_shard(folder / "features" / manifest.shards[0].file)


def test_manifest_describes_every_feature_and_names_its_parent(tmp_path: Path) -> None:
    manifest, arrays = featurize(tmp_path, make_daily(), DAILY)
    assert manifest.kind == "features"
    assert [column.name for column in manifest.columns[:3]] == ["time_ns", "price", "index.close.logret"]
    assert "vix.vix.logret.zscore_10" in [column.name for column in manifest.columns]
    assert arrays["features"].shape == (len(arrays["time_ns"]), len(manifest.columns) - 2)
    assert manifest.parent_sha256 == manifest_sha256(read_manifest(tmp_path / "raw" / "MANIFEST.json"))
    assert read_manifest(tmp_path / "features" / "MANIFEST.json") == manifest
    assert {check_shard(tmp_path / "features", shard) for shard in manifest.shards} == {""}


def test_the_manifest_tells_which_kernels_ran_and_both_give_the_same_features(tmp_path: Path) -> None:
    raw = publish_dataset(tmp_path / "raw", make_daily())
    features = {}
    for backend in ("auto", "reference"):
        folder = tmp_path / backend
        manifest = run_featurize(DAILY, shards=raw, out=folder / "MANIFEST.json", backend=backend)
        assert read_manifest(folder / "MANIFEST.json").kernels == ("cpp" if backend == "auto" else "reference")
        features[backend] = read_shard(folder / manifest.shards[0].file)["features"]
    np.testing.assert_allclose(features["auto"], features["reference"], rtol=1e-6, atol=1e-6)


def test_features_are_finite_float32_and_prices_are_the_references(tmp_path: Path) -> None:
    shards = make_daily()
    _, arrays = featurize(tmp_path, shards, DAILY)
    assert arrays["features"].dtype == np.float32
    assert np.isfinite(arrays["features"]).all()
    # The first return is of row 1, and three of them make the first window.
    np.testing.assert_array_equal(arrays["price"], shards["index"]["close"][3:])
    np.testing.assert_array_equal(arrays["time_ns"], shards["index"]["time_ns"][3:])


def test_a_return_and_its_mean_are_where_their_names_say(tmp_path: Path) -> None:
    shards = make_daily()
    manifest, arrays = featurize(tmp_path, shards, DAILY)
    names = [column.name for column in manifest.columns[2:]]
    returns = 100 * np.diff(np.log(shards["index"]["close"]))
    found = arrays["features"][:, names.index("index.close.logret")]
    np.testing.assert_allclose(found, returns[2:], rtol=1e-5)
    found = arrays["features"][:, names.index("index.close.logret.mean_3")]
    np.testing.assert_allclose(found, (returns[2:] + returns[1:-1] + returns[:-2]) / 3, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("shards", "settings"), [(make_daily(), DAILY), (make_quotes(), QUOTES)])
def test_rows_to_come_never_change_a_feature(
    tmp_path: Path, shards: dict[str, Arrays], settings: FeatureSettings
) -> None:
    _, before = featurize(tmp_path / "a", shards, settings)
    cut_ns = int(before["time_ns"][60])
    changed = {name: change_after(arrays, cut_ns) for name, arrays in shards.items()}
    _, after = featurize(tmp_path / "b", changed, settings)
    past = before["time_ns"] <= cut_ns
    np.testing.assert_array_equal(before["features"][past], after["features"][: past.sum()])
    np.testing.assert_array_equal(before["price"][past], after["price"][: past.sum()])
    assert not np.array_equal(before["features"][~past], after["features"][past.sum() :])


def change_after(arrays: Arrays, cut_ns: int) -> Arrays:
    """The same rows up to a moment; after it every value tripled, and the last ten rows gone."""
    later = arrays["time_ns"] > cut_ns
    changed = {
        name: array if name == "time_ns" else np.where(later, 3 * array, array) for name, array in arrays.items()
    }
    return {name: array[:-10] for name, array in changed.items()}


def test_a_series_that_begins_later_is_zero_before(tmp_path: Path) -> None:
    shards = make_daily()
    shards["vix"] = {name: array[20:] for name, array in shards["vix"].items()}
    manifest, arrays = featurize(tmp_path, shards, DAILY)
    of_vix = [column.name.startswith("vix.") for column in manifest.columns[2:]]
    unborn = arrays["time_ns"] < shards["vix"]["time_ns"][0]
    assert unborn.any()
    assert np.count_nonzero(arrays["features"][np.ix_(unborn, of_vix)]) == 0
    assert np.count_nonzero(arrays["features"][np.ix_(~unborn, of_vix)]) > 0


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first, _ = featurize(tmp_path / "a", make_quotes(), QUOTES)
    second, _ = featurize(tmp_path / "b", make_quotes(), QUOTES.model_copy(update={"threads": 2}))
    assert first.shards[0].sha256 == second.shards[0].sha256


def test_quotes_of_several_days_join_in_time_order(tmp_path: Path) -> None:
    first, second = make_quotes()["x_quote"], make_quotes()["x_quote"]
    second = second | {"time_ns": second["time_ns"] + DAY_NS}
    raw = publish_dataset(tmp_path / "raw", {"b": second, "a": first})
    manifest = read_manifest(raw)
    same = tuple(dataclasses.replace(entry, instrument="x_quote") for entry in manifest.shards)
    write_artifact(raw, dataclasses.replace(manifest, shards=same))
    features = run_featurize(QUOTES, shards=raw, out=tmp_path / "features" / "MANIFEST.json")
    assert features.shards[0].first_ns < DAY_NS < features.shards[0].last_ns


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference": "dax"}, "features.reference='dax' is not in dataset 'made': expected one of index, vix"),
        ({"windows": (5, 5)}, r"features.windows=\[5, 5\]: expected each length once"),
        ({"windows": (2, 10)}, "features.windows has 2, expected at least features.min_periods=3"),
    ],
)
def test_settings_that_the_dataset_cannot_meet_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        featurize(tmp_path, make_daily(), DAILY.model_copy(update=settings))


def test_quotes_recipe_names_the_columns_that_a_reference_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="'index' has no column bid_price, bid_size, ask_price, ask_size"):
        featurize(tmp_path, make_daily(), QUOTES.model_copy(update={"reference": "index"}))


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"3 rows are too few for features\.min_periods=3"):
        featurize(tmp_path, make_daily(rows=3), DAILY)


def test_a_dataset_without_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="lists no shards: run ingest"):
        featurize(tmp_path, {}, DAILY)


def test_a_shard_that_is_not_its_manifests_is_refused(tmp_path: Path) -> None:
    raw = publish_dataset(tmp_path, make_daily())
    publish_dataset(tmp_path / "other", {"index": make_daily(60)["index"]})
    (tmp_path / "index.h5").write_bytes((tmp_path / "other" / "index.h5").read_bytes())
    with pytest.raises(ArtifactError, match=r"index\.h5 has .* its manifest says .*: run ingest again"):
        run_featurize(DAILY, shards=raw, out=tmp_path / "features" / "MANIFEST.json")
