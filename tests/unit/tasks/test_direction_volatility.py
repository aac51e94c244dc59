import math

import numpy as np
import pytest
import torch

from windtunnel.errors import ArtifactError, SettingsError
from windtunnel.records.data import ShardManifest
from windtunnel.settings.task import TaskSettings
from windtunnel.tasks.direction_volatility import make_table, sample_losses
from windtunnel.tasks.find import find_task
from windtunnel.tasks.split import split_rows
from windtunnel.tasks.table import count_features, read_table


def test_the_loss_is_cross_entropy_and_weighted_squared_error():
    output_bo = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    target_bo = torch.tensor([[1.0, 3.0], [0.0, 0.0]])
    losses = sample_losses(output_bo, target_bo, volatility_weight=0.5)
    assert losses.tolist() == pytest.approx([math.log(2) + 0.5 * 4, math.log(1 + math.exp(2))])


def test_volatility_is_scaled_by_the_training_samples_alone():
    price = np.exp(np.cumsum(0.01 * np.random.default_rng(0).standard_normal(400)))
    settings = TaskSettings(window=8, horizon=3)
    train = split_rows(400, settings).train
    table = make_table(price, settings, train)
    fitted = table.values[train.first_sample : train.end_sample, 1]
    assert fitted.mean() == pytest.approx(0, abs=1e-5)
    assert fitted.std() == pytest.approx(1, abs=1e-5)
    price[train.end_row + 1 :] *= np.linspace(1, 5, len(price) - train.end_row - 1)
    assert make_table(price, settings, train).volatility_std == table.volatility_std


def test_a_market_that_never_moves_in_training_has_finite_targets():
    settings = TaskSettings(window=8, horizon=3)
    table = make_table(np.full(400, 5.0), settings, split_rows(400, settings).train)
    assert np.isfinite(table.values).all()


def test_an_unknown_task_is_refused_with_those_that_there_are():
    with pytest.raises(SettingsError, match="'momentum' is unknown: choose one of direction_volatility"):
        find_task("momentum")


def test_a_table_joins_its_shards_in_order_of_time(tmp_path):
    from dataclasses import replace

    from toy_trial import write_features
    from windtunnel.artifacts import read_artifact, write_artifact
    from windtunnel.shards.writer import write_shard

    path = write_features(tmp_path, rows=50, channels=2)
    manifest = read_artifact(path, ShardManifest)
    earlier = {
        "time_ns": np.arange(-9, 0, dtype=np.int64),
        "price": np.ones(9),
        "features": np.ones((9, 2), np.float32),
    }
    entry = write_shard(tmp_path / "zz.h5", earlier, instrument="toy", compression="lz4", chunk_rows=8)
    write_artifact(path, replace(manifest, shards=(*manifest.shards, entry)))
    price, features_tc = read_table(path)
    assert features_tc.shape == (59, 2)
    assert (price[:9] == 1).all()
    assert count_features(path) == 2


def test_raw_shards_are_not_a_table(tmp_path):
    from windtunnel.artifacts import write_artifact

    path = write_artifact(tmp_path / "MANIFEST.json", ShardManifest("raw", "d", "s", (), (), (), ""))
    with pytest.raises(ArtifactError, match="lists 0 raw shards, expected features: run featurize"):
        read_table(path)
