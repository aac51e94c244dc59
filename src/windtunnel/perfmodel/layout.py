"""How a training step is laid out over devices: the sizes of the axes, and what each device holds at once."""

from dataclasses import dataclass
from enum import StrEnum


class Recompute(StrEnum):
    """What the backward pass computes anew of a layer, instead of having kept it."""

    NONE = "none"
    SELECTIVE = "selective"
    """Attention's scores alone (Korthikanti et al. 2022, arXiv:2205.05198)."""
    FULL = "full"


@dataclass(frozen=True)
class Layout:
    """A legal layout; ranks are numbered tensor first, then data, then pipeline, as Megatron does."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    chunks: int = 1
    """Parts of the model that a pipeline stage holds (interleaved schedule)."""
    sequence_parallel: bool = False
    zero: int = 0
    """Stage of ZeRO; 3 is also FSDP."""
    micro_batch: int = 1
    """Samples of one micro-batch of one data-parallel rank."""
    micro_batches: float = 1
    """A step's micro-batches of one data-parallel rank."""
    ranks_per_node: int = 8
    recompute: Recompute = Recompute.NONE
    fused_attention: bool = False
    """Scores are never written to memory."""

    @property
    def ranks(self) -> int:
        """Devices in all."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def tensor_in_node(self) -> int:
        """Ranks of a tensor group that one node holds."""
        return min(self.tensor, self.ranks_per_node)

    @property
    def data_in_node(self) -> int:
        """Ranks of a data group that one node holds."""
        return max(1, min(self.data, self.ranks_per_node // self.tensor))
