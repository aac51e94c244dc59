"""Settings of a sweep: how trials are run, and what counts as done."""

from pydantic import Field

from windtunnel.settings.base import Settings


class SweepSettings(Settings):
    strict: bool = False
    """Keep the sweep unfinished while a trial has FAILED, so that the same command tries it again."""
    local_trials: int = Field(default=1, ge=1)
    """Trials at a time on this machine. More than one changes their speed, which is a result."""
    max_attempts: int = Field(default=3, ge=1)
    """Attempts of a trial that ended by no fault of its own."""
    poll_s: float = Field(default=30.0, gt=0)
    """Seconds between two looks at squeue."""
    marker_poll_s: float = Field(default=1.0, gt=0)
    """Seconds between two looks at the trials' own records."""
    lost_after_s: float = Field(default=120.0, gt=0)
    """Seconds without a sign of life, in Slurm or in a trial's records, before a trial is LOST."""
