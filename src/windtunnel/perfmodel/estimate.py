"""How long a training step takes: a transformer, its layout, a device, and what was measured of the stack.

The parts add up to the step. Source of the schedule's bubble: Narayanan et al. 2021 (arXiv:2104.04473, section 2.2).
"""

import math
from dataclasses import dataclass, fields

from windtunnel.perfmodel.communication import (
    HALF,
    exchange_activations_s,
    gather_weights_s,
    reduce_gradients_s,
    transfer_to_stage_s,
)
from windtunnel.perfmodel.constants import Constants
from windtunnel.perfmodel.hardware import Device
from windtunnel.perfmodel.layout import Layout, Recompute
from windtunnel.perfmodel.transformer import (
    Transformer,
    count_attention_flops,
    count_head_flops,
    count_matmul_flops,
)

ALIGNED = 32
"""Matrix units want widths of whole multiples of it."""
_NARROW = ("fp8", "fp4")
_SHARPNESS = 3.0
"""How abruptly launching gives way to computing as what binds a pass."""
_EXCHANGES = 2
"""Of activations in a tensor group, in one pass through a layer."""


@dataclass(frozen=True)
class Job:
    """What is trained, how it is laid out, and on what."""

    model: Transformer
    layout: Layout
    device: Device
    dtype: str
    """Of the matrix products."""

    @property
    def tokens(self) -> float:
        """Of one micro-batch on one rank."""
        return self.layout.micro_batch * self.model.seq / self.layout.context

    @property
    def is_ragged(self) -> bool:
        """Whether a rank's part of the width is no multiple of what matrix units want."""
        return (self.model.width / self.layout.tensor) % ALIGNED != 0


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step, by what they go to."""

    layers_s: float
    """Passes through layers, with what a tensor group exchanges in them."""
    head_s: float
    bubble_s: float
    """Stages of the pipeline that wait for their first or next micro-batch."""
    transfer_s: float
    data_s: float
    """Gradients and sharded weights, as far as nothing hides them."""
    optimizer_s: float
    fixed_s: float

    @property
    def total_s(self) -> float:
        """The whole step."""
        return math.fsum(getattr(self, field.name) for field in fields(self))


def estimate_step(job: Job, constants: Constants) -> StepTime:
    """The step's time; raises SettingsError for a dtype that the device has no units for."""
    model, layout = job.model, job.layout
    layers = model.layers / layout.pipeline
    stage_s = layers * _time_layer(job, constants)
    busy_s = layout.micro_batches * (stage_s + _time_head(job, constants))
    params = (layers * model.layer_params + model.embedding_params) / layout.tensor
    return StepTime(
        layers_s=layout.micro_batches * stage_s,
        head_s=busy_s - layout.micro_batches * stage_s,
        bubble_s=(layout.pipeline - 1) / layout.chunks * stage_s,
        transfer_s=_time_transfers(job, constants),
        data_s=_time_data(params, layout, busy_s=busy_s, constants=constants),
        optimizer_s=_time_optimizer(params, job, constants),
        fixed_s=constants.step_s,
    )


def _time_layer(job: Job, constants: Constants) -> float:
    """All passes of one micro-batch through one layer, on one rank of its tensor group."""
    layout = job.layout
    exchange_s = _EXCHANGES * exchange_activations_s(job.tokens, job.model.width, layout, constants)
    launch_s = constants.launch_s + _EXCHANGES * constants.sync_s * (layout.tensor - 1)
    attention_s = _time_attention(job, constants)
    forward_s = attention_s + _time_matrices(job, constants) + _time_streams(job, constants)
    passes = [forward_s, 2 * forward_s] + ([forward_s] if layout.recompute == Recompute.FULL else [])
    total_s = math.fsum(_bind(seconds + exchange_s, launch_s) for seconds in passes)
    return total_s + (attention_s if layout.recompute == Recompute.SELECTIVE else 0.0)


def _time_attention(job: Job, constants: Constants) -> float:
    fused, share = job.layout.fused_attention, job.layout.tensor
    flops = count_attention_flops(job.model, job.tokens, causal=fused) / share
    scores = 0.0 if fused else job.tokens * job.model.seq * job.model.heads / share
    moved = constants.score_passes * scores * HALF
    return flops / _find_wide_rate(job, constants) * constants.attention + moved / job.device.memory_bytes_per_s


def _time_matrices(job: Job, constants: Constants) -> float:
    narrow = constants.narrow if job.dtype in _NARROW else 1.0
    rate = job.device.peak(job.dtype) * constants.efficiency * narrow
    seconds = count_matmul_flops(job.model, job.tokens) / job.layout.tensor / rate
    return seconds * (constants.misaligned if job.is_ragged else 1.0)


def _time_streams(job: Job, constants: Constants) -> float:
    """What memory moves besides: activations, and the weights once."""
    layout = job.layout
    own = constants.stream_passes / (layout.tensor if layout.sequence_parallel else 1)
    passes = own + constants.shared_passes / layout.tensor
    moved = passes * job.tokens * job.model.width + job.model.layer_params / layout.tensor
    return moved * HALF / job.device.memory_bytes_per_s


def _time_head(job: Job, constants: Constants) -> float:
    """Forward and backward of the output matrix and the loss, of one micro-batch."""
    share = job.layout.tensor
    passes = constants.logits_passes * (constants.whole_logits if share == 1 else 1.0)
    moved = passes * job.tokens * job.model.vocab / share * HALF
    flops = 3 * count_head_flops(job.model, job.tokens) / share
    return flops / _find_wide_rate(job, constants) + moved / job.device.memory_bytes_per_s


def _find_wide_rate(job: Job, constants: Constants) -> float:
    """Of products that stay in two bytes a number where the weights have fewer."""
    return job.device.peak("bf16" if job.dtype in _NARROW else job.dtype) * constants.efficiency


def _time_transfers(job: Job, constants: Constants) -> float:
    layout = job.layout
    if layout.pipeline == 1:
        return 0.0
    count = 2 * layout.chunks * (layout.micro_batches + layout.pipeline - 1)
    return count * transfer_to_stage_s(job.tokens, job.model.width, layout, constants)


def _time_data(params: float, layout: Layout, *, busy_s: float, constants: Constants) -> float:
    if layout.zero == 3:
        moved_s = layout.micro_batches * gather_weights_s(params, layout, constants)
        return max(0.0, moved_s - constants.overlap * busy_s)
    return reduce_gradients_s(params, layout, constants)


def _time_optimizer(params: float, job: Job, constants: Constants) -> float:
    own = params / job.layout.data if job.layout.zero else params
    return own * constants.optimizer_bytes / job.device.memory_bytes_per_s


def _bind(busy_s: float, launch_s: float) -> float:
    """The longer of the two, a little more where they are near each other."""
    return float((busy_s**_SHARPNESS + launch_s**_SHARPNESS) ** (1.0 / _SHARPNESS))
