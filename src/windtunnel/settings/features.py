"""Settings of featurize: what is computed over a dataset's shards."""

from typing import Literal, Self

from pydantic import Field, model_validator

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

    @model_validator(mode="after")
    def _give_every_window_a_value(self) -> Self:
        if min(self.windows) < self.min_periods:
            raise ValueError(
                f"features.min_periods={self.min_periods} is more than the shortest of features.windows="
                f"{list(self.windows)}: lower it to {max(2, min(self.windows))}, or lengthen the window"
            )
        if len(set(self.windows)) < len(self.windows):
            raise ValueError(f"features.windows={list(self.windows)}: name each length once")
        return self
