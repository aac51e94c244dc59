"""Settings of a parallel layout: how many ranks, and how they divide the work."""

from pydantic import Field

from windtunnel.settings.base import Settings


class ParallelismSettings(Settings):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Name in rankings and plots."""
    data: int = Field(default=1, ge=1)
    """Data-parallel ranks: each takes its part of the global batch."""
    shard: int = Field(default=1, ge=1)
    """Of these, ranks that divide one copy of weights, gradients and optimizer among them: 1 is DDP, all of `data` is
    FSDP2, fewer are HSDP, which keeps `data` / `shard` such copies."""
    reshard: bool = True
    """Whether a sharded block gives its gathered weights back after its forward pass, and gathers them again for its
    backward pass: less memory, more communication. Without effect where `shard` is 1."""
    tensor: int = Field(default=1, ge=1)
    """Ranks that divide the matrices and the rows of each block among them, for the same samples."""
    pipeline: int = Field(default=1, ge=1)
    """Pipeline stages."""
    nodes: int = Field(default=1, ge=1)
    """Nodes that the ranks are spread over, equally."""

    @property
    def ranks(self) -> int:
        """Processes of one trial."""
        return self.data * self.tensor * self.pipeline

    @property
    def replicas(self) -> int:
        """Whole copies of the model among the data-parallel ranks."""
        return self.data // self.shard
