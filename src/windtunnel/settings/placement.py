"""Settings of placement: which rank runs on which granted node."""

from typing import Literal

from windtunnel.settings.base import Settings


class PlacementSettings(Settings):
    policy: Literal["leaf", "slurm"] = "leaf"
    """`leaf` orders ranks so that a ring crosses as few switches as it can; `slurm` keeps Slurm's order."""
