"""Settings of the inference latency measurement."""

from pydantic import Field

from windtunnel.settings.base import Settings


class LatencySettings(Settings):
    samples: int = Field(default=2000, ge=100)
    """Single-sample inferences that are timed."""
    discard: int = Field(default=200, ge=0)
    """First inferences left out, as warm-up."""
    threads: int = Field(default=1, ge=1)
    """CPU threads."""
