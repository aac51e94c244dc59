"""Settings of featurize: what is computed over a dataset's shards."""

from typing import Literal

from pydantic import Field

from windtunnel.settings.base import Settings


class FeatureSettings(Settings):
    recipe: Literal["daily", "quotes"]
    """How shards become one table in time: `daily` joins daily series by date, as of the reference's
    days; `quotes` turns one-sided quotes into best bid, offer and mid by their last values."""
    reference: str
    """Instrument whose price is forecast."""
    windows: tuple[int, ...] = Field(default=(5, 20, 60), min_length=1)
    """Rolling windows in rows; each gives mean, std and z-score of every column."""
    min_periods: int = Field(default=2, ge=2)
    """Fewest rows in a window for a value; NaN below it."""
    threads: int = Field(default=1, ge=1)
    """Threads of the kernel."""
