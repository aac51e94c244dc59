"""Settings of the report."""

from typing import Literal

from windtunnel.settings.base import Settings


class ReportSettings(Settings):
    title: str = ""
    """Title of the page; the study's name when empty."""
    rank_by: Literal["validation_loss", "samples_per_s", "cost"] = "validation_loss"
    """What the ranking and the recommendation order trials by."""
