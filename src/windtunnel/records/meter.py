"""What is metered inside training: phases by rank, and the work of a step. docs/metrics.md has the conventions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean


class StepPhase(StrEnum):
    """What a rank's time in the training loop goes to; at each moment it is one of these."""

    DATA_WAIT = "data_wait"
    """Waiting for the batch on the host."""
    HOST_TO_DEVICE = "host_to_device"
    FORWARD = "forward"
    """With the loss."""
    BACKWARD = "backward"
    """With the communication that it hides."""
    COMMUNICATION = "communication"
    """Exposed: gradients were computed, and not yet summed over ranks."""
    OPTIMIZER = "optimizer"
    """With the clearing of gradients."""
    CHECKPOINT = "checkpoint"
    """Held up by a save."""
    OTHER = "other"
    """Between steps: losses brought together, lines written, the vote on an end, a return after a fault."""


@dataclass(frozen=True)
class RankPhases:
    """Where one rank's time went in this attempt's loop, its warm-up left out."""

    wall_s: float
    """By the host's clock, from the first step that counts to the end of the loop."""
    steps: int
    seconds: dict[str, float]
    """By StepPhase, on the device's own clock: they add up to `wall_s`."""


@dataclass(frozen=True)
class RankMemory:
    """What one rank holds after its last step, and the most that it held."""

    weights_bytes: int
    """Parameters and buffers."""
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int | None
    """Saved by the forward pass of the attempt's first step for its backward pass; null where none was taken."""
    peak_bytes: int
    """On an accelerator what its allocator had given out at most; on a processor the resident size of the process,
    which holds Python, torch and the data too."""
    allocated_bytes: int | None
    """By the accelerator's allocator, now; null on a processor, which has none that tells."""
    reserved_bytes: int | None


@dataclass(frozen=True)
class Energy:
    """Of all hosts of a trial while its last attempt trained."""

    joules: float
    source: str
    """`rapl`: the processors' packages, with whatever else ran on them."""


class FlopSource(StrEnum):
    """Where a count of operations is from."""

    DECLARED = "declared"
    """A formula of ours."""
    COUNTED = "counted"
    """torch's counter, over the model itself."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class StepWork:
    """What one optimizer step works off on all ranks together; tensor-parallel ranks share samples, and add none."""

    samples: int
    tokens: int
    """Rows of the samples' windows."""
    dtype: str
    """Arithmetic of the matrix products."""
    model_flops: int | None = None
    """What its mathematics needs: nothing that is computed again."""
    hardware_flops: int | None = None
    """What is computed, again or not."""
    flop_source: FlopSource = FlopSource.UNKNOWN

    def with_flops(self, model: int, hardware: int | None, source: FlopSource) -> "StepWork":
        """The same with its operations."""
        return replace(self, model_flops=model, hardware_flops=hardware, flop_source=source)


def sum_error(phases: RankPhases) -> float:
    """How far the phases' sum is from the wall time, as a share of it; 0 where no time passed."""
    if phases.wall_s <= 0:
        return 0.0
    return abs(sum(phases.seconds.values()) - phases.wall_s) / phases.wall_s


def average_step(ranks: Sequence[RankPhases]) -> dict[str, float]:
    """Seconds of each phase for each step, as a mean over ranks; empty where no step was taken."""
    counted = [phases for phases in ranks if phases.steps]
    names = dict.fromkeys(name for phases in counted for name in phases.seconds)
    return {name: fmean(phases.seconds.get(name, 0.0) / phases.steps for phases in counted) for name in names}
