import pytest
import torch
from torch import nn

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, SettingsError
from windtunnel.records.cluster import Models
from windtunnel.records.data import Column, ShardEntry, ShardManifest
from windtunnel.settings.model import ModelSettings
from windtunnel.settings.study import TraceSettings
from windtunnel.settings.task import TaskSettings
from windtunnel.trace.run import run_trace, trace_model

N_FEATURES, WINDOW, BATCH = 3, 4, 8


class Linear(nn.Module):
    def __init__(self, n_features, n_outputs, window, width=2):
        super().__init__()
        self.head = nn.Linear(n_features * window, width)

    def forward(self, x_btf):
        assert x_btf.device.type == "meta"
        return self.head(x_btf.flatten(1))


class MakesTensors(Linear):
    def forward(self, x_btf):
        return super().forward(x_btf + torch.arange(x_btf.shape[-1]))


class CannotBuild(Linear):
    def __init__(self, n_features, n_outputs, window):
        raise ValueError("window must be a power of three")


class CannotRun(Linear):
    def forward(self, x_btf):
        return x_btf @ torch.empty(99, 2)


def settings(kind, **args):
    return ModelSettings(name=kind.__name__, target=f"{__name__}.{kind.__name__}", args=args)


def trace(kind, **args):
    return trace_model(settings(kind, **args), n_features=N_FEATURES, n_outputs=2, window=WINDOW, batch_size=BATCH)


def test_a_linear_layer_has_its_parameters_and_flops():
    found = trace(Linear)
    assert found.params == 12 * 2 + 2
    assert found.forward_flops == 2 * BATCH * 12 * 2
    (product,) = [operation for operation in found.operations if operation.flops]
    assert (product.name, product.flops) == ("aten.addmm.default", found.forward_flops)
    assert product.input_shapes == ((2,), (BATCH, 12), (12, 2))
    assert product.output_shapes == ((BATCH, 2),)


def test_a_forward_that_makes_tensors_is_traced():
    assert trace(MakesTensors).forward_flops == trace(Linear).forward_flops


@pytest.mark.parametrize("target", ["windtunnel.models.tcn.TCN", "windtunnel.models.transformer.CausalTransformer"])
def test_operations_of_our_models_sum_to_their_flops(target):
    found = trace_model(
        ModelSettings(name="m", target=target), n_features=N_FEATURES, n_outputs=2, window=WINDOW, batch_size=BATCH
    )
    assert sum(operation.flops for operation in found.operations) == found.forward_flops > 0


@pytest.mark.parametrize(
    ("kind", "args", "message"),
    [
        (CannotBuild, {}, "'CannotBuild'.*cannot be built.*ValueError: window must be a power of three"),
        (CannotRun, {}, r"'CannotRun'.*fails on an input of shape \(8, 4, 3\)"),
        (Linear, {"width": 5}, r"'Linear'.*returns \(8, 5\), expected a tensor of shape \(8, 2\)"),
        (Linear, {"depth": 1}, "'Linear'.*depth"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_by_name(kind, args, message):
    with pytest.raises(SettingsError, match=message):
        trace(kind, **args)


def manifest(tmp_path, kind, names):
    path = tmp_path / "MANIFEST.json"
    columns = tuple(Column(name, "float32") for name in names)
    shard = ShardEntry("x.h5", "x", 1, 1, "", 0, 0)
    write_artifact(path, ShardManifest(kind, "d", "s", columns, (shard,), (), ""))
    return path


def test_the_stage_writes_every_model(tmp_path):
    features = manifest(tmp_path, "features", ["time_ns", "price", "a", "b"])
    stage = TraceSettings(models=(settings(Linear), settings(MakesTensors)), task=TaskSettings(), batch_size=BATCH)
    run_trace(stage, features=features, out=tmp_path / "models.json")
    written = read_artifact(tmp_path / "models.json", Models)
    assert [model.name for model in written.models] == ["Linear", "MakesTensors"]
    assert written.models[0].params == 2 * 32 * 2 + 2


def test_raw_shards_are_refused(tmp_path):
    features = manifest(tmp_path, "raw", ["time_ns", "close"])
    stage = TraceSettings(models=(settings(Linear),), task=TaskSettings(), batch_size=BATCH)
    with pytest.raises(ArtifactError, match="1 raw shards, expected features: run featurize"):
        run_trace(stage, features=features, out=tmp_path / "models.json")
