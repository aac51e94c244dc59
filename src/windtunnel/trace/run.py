"""The trace stage: each model of a study runs forward once on the meta device, which costs no memory and no time."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.errors import SettingsError
from windtunnel.models.build import build_model
from windtunnel.records.cluster import Models, ModelTrace
from windtunnel.settings.model import ModelSettings
from windtunnel.settings.study import TraceSettings
from windtunnel.tasks.find import find_task
from windtunnel.tasks.table import count_features
from windtunnel.trace.operations import OperationRecorder
from windtunnel.units import format_count

# What the code of a user's model is known to raise when it does not fit its input. Anything else is
# passed on with its traceback.
_MODEL_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


def run_trace(settings: TraceSettings, *, features: Path | None, out: Path) -> Models:
    """Write parameters, operators and FLOPs of every model; raises SettingsError for one that cannot run."""
    assert features is not None or not settings.models, "a study of programs alone has no model to trace"
    n_features = count_features(features) if features is not None else 0
    n_outputs = find_task(settings.task.name).n_outputs
    traces = []
    for model in settings.models:
        trace = trace_model(
            model,
            n_features=n_features,
            n_outputs=n_outputs,
            window=settings.task.window,
            batch_size=settings.batch_size,
        )
        traces.append(trace)
        print(render_trace(trace), flush=True)
    record = Models(tuple(traces))
    write_artifact(out, record, settings_hash=hash_json(settings))
    return record


def trace_model(
    settings: ModelSettings, *, n_features: int, n_outputs: int, window: int, batch_size: int
) -> ModelTrace:
    """One forward pass of float32 (batch_size, window, n_features) on the meta device."""
    with torch.device("meta"):
        model = _build(settings, n_features=n_features, n_outputs=n_outputs, window=window)
        x_btf = torch.empty(batch_size, window, n_features)
        recorder = OperationRecorder()
        with torch.no_grad(), FlopCounterMode(display=False) as counter, recorder:
            output = _forward(settings, model, x_btf)
    _check_output(settings, output, (batch_size, n_outputs))
    return ModelTrace(
        name=settings.name,
        target=settings.target,
        params=sum(parameter.numel() for parameter in model.parameters()),
        batch_size=batch_size,
        forward_flops=counter.get_total_flops(),
        operations=tuple(recorder.operations),
    )


def render_trace(trace: ModelTrace) -> str:
    """One line for people."""
    return (
        f"{trace.name}: {format_count(trace.params)} parameters, {len(trace.operations)} operators, "
        f"{format_count(trace.forward_flops)}FLOP forward at batch {trace.batch_size}"
    )


def _build(settings: ModelSettings, *, n_features: int, n_outputs: int, window: int) -> nn.Module:
    try:
        return build_model(settings, n_features=n_features, n_outputs=n_outputs, window=window)
    except SettingsError:
        raise
    except _MODEL_FAILURES as error:
        raise SettingsError(
            f"model {settings.name!r} ({settings.target}) cannot be built with {settings.args}: {_reason(error)}"
        ) from error


def _forward(settings: ModelSettings, model: nn.Module, x_btf: torch.Tensor) -> object:
    try:
        return model(x_btf)
    except _MODEL_FAILURES as error:
        raise SettingsError(
            f"model {settings.name!r} ({settings.target}) fails on an input of shape {tuple(x_btf.shape)} "
            f"(batch, window, n_features) of the meta device: {_reason(error)}"
        ) from error


def _check_output(settings: ModelSettings, output: object, expected: tuple[int, int]) -> None:
    found = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if found != expected:
        raise SettingsError(
            f"model {settings.name!r} ({settings.target}) returns {found}, expected a tensor of shape {expected}: "
            "(batch, n_outputs of the task)"
        )


def _reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"
