"""What a step of a trial works off: samples, tokens, and floating-point operations."""

from windtunnel.models.count import count_step
from windtunnel.perfmodel.flops import count_flops
from windtunnel.records.meter import FlopSource, StepWork
from windtunnel.settings.study import TrialSettings


def describe_work(settings: TrialSettings, *, n_features: int, n_outputs: int) -> StepWork:
    """Of all ranks together. A model of the user's is counted by running it, so its generators are drawn from."""
    samples, window = settings.training.batch_size, settings.task.window
    sizes = {"n_features": n_features, "n_outputs": n_outputs, "window": window}
    declared = count_flops(settings.model, **sizes)
    work = StepWork(samples, samples * window, settings.training.precision)
    if declared is not None:
        hardware = samples * (declared.model + declared.fused_again)
        return work.with_flops(samples * declared.model, hardware, FlopSource.DECLARED)
    counted = count_step(settings.model, **sizes)
    return work if counted is None else work.with_flops(samples * counted, None, FlopSource.COUNTED)
