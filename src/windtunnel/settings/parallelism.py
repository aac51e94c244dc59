"""Settings of a parallel layout: how many ranks, and how they divide the work."""

from pydantic import Field

from windtunnel.settings.base import Settings


class ParallelismSettings(Settings):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Name in rankings and plots."""
    data: int = Field(default=1, ge=1)
    """Data-parallel ranks (DDP when more than one)."""
    tensor: int = Field(default=1, ge=1)
    """Tensor-parallel ranks."""
    pipeline: int = Field(default=1, ge=1)
    """Pipeline stages."""
    nodes: int = Field(default=1, ge=1)
    """Nodes that the ranks are spread over, equally."""

    @property
    def ranks(self) -> int:
        """Processes of one trial."""
        return self.data * self.tensor * self.pipeline
