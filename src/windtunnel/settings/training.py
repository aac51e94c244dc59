"""Settings of training: the loop, its precision, its checkpoints."""

from typing import Literal

from pydantic import Field

from windtunnel.settings.base import Settings


class TrainingSettings(Settings):
    steps: int = Field(default=200, ge=1)
    """Optimizer steps."""
    batch_size: int = Field(default=64, ge=1)
    """Samples in a global batch, over all ranks."""
    accumulate: int = Field(default=1, ge=1)
    """Micro-batches that a rank takes its part of each global batch in, one after the other: so many times less
    memory for activations, and one sum over ranks, with the last of them."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of AdamW."""
    weight_decay: float = Field(default=0.01, ge=0)
    """AdamW's weight decay."""
    warmup_steps: int = Field(default=20, ge=0)
    """Steps over which the learning rate rises linearly; cosine to a tenth afterwards."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of the forward and backward pass: `fp32`, or `bf16` autocast with fp32 weights."""
    checkpoint_every: int = Field(default=50, ge=0)
    """Steps between checkpoints; the last step always makes one. 0 leaves it to Daly's formula, from what a
    checkpoint is measured to cost and `node_mtbf_hours`."""
    node_mtbf_hours: float = Field(default=720.0, gt=0, le=1e9)
    """Hours between two failures of a node, on average; more nodes fail more often."""
    async_checkpoints: bool = True
    """Write checkpoints while training goes on, from a copy of the state in memory, which takes as much of that."""
    rollbacks: int = Field(default=2, ge=0)
    """Returns to the last clean checkpoint after a loss that is not finite, before the trial fails: the first replays
    the same steps, the second skips the batch that did it again. 0 fails at once."""
    spike_factor: float = Field(default=0.0, ge=0)
    """Multiple of the median of the last 50 losses that counts as such a fault, too; 0 for none."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Newest checkpoints kept."""
    keep_every_steps: int = Field(default=0, ge=0)
    """Keep those after whole multiples of so many steps, too; 0 keeps none for that."""
    keep_best: int = Field(default=0, ge=0)
    """Keep so many of the lowest training loss, too."""
    log_every: int = Field(default=10, ge=1)
    """Steps between records in metrics.jsonl."""
    threads_per_rank: int = Field(default=1, ge=1)
    """CPU threads of each rank."""
    discard_steps: int = Field(default=10, ge=0)
    """First steps of an attempt left out of throughput, as warm-up."""
